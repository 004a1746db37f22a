// SPDX-License-Identifier: BSD-2-Clause
//
// xpm_memory_spram - a stand-in for Xilinx' single-port memory.
module xpm_memory_spram #(
    parameter int    ADDR_WIDTH_A        = 6,
    parameter int    AUTO_SLEEP_TIME     = 0,
    parameter int    BYTE_WRITE_WIDTH_A  = 32,
    parameter int    CASCADE_HEIGHT      = 0,
    parameter string ECC_BIT_RANGE       = "7:0",
    parameter string ECC_MODE            = "no_ecc",
    parameter string ECC_TYPE            = "none",
    parameter int    IGNORE_INIT_SYNTH   = 0,
    parameter string MEMORY_INIT_FILE    = "none",
    parameter string MEMORY_INIT_PARAM   = "0",
    parameter string MEMORY_OPTIMIZATION = "true",
    parameter string MEMORY_PRIMITIVE    = "auto",
    parameter int    MEMORY_SIZE         = 2048,
    parameter int    MESSAGE_CONTROL     = 0,
    parameter string RAM_DECOMP          = "auto",
    parameter int    READ_DATA_WIDTH_A   = 32,
    parameter int    READ_LATENCY_A      = 2,
    parameter string READ_RESET_VALUE_A  = "0",
    parameter string RST_MODE_A          = "SYNC",
    parameter int    SIM_ASSERT_CHK      = 0,
    parameter int    USE_MEM_INIT        = 1,
    parameter int    USE_MEM_INIT_MMI    = 0,
    parameter string WAKEUP_TIME         = "disable_sleep",
    parameter int    WRITE_DATA_WIDTH_A  = 32,
    parameter string WRITE_MODE_A        = "read_first",
    parameter int    WRITE_PROTECT       = 1
) (
    input  logic                                             clka,
    input  logic                                             rsta,
    input  logic                                             ena,
    input  logic                                             regcea,
    input  logic [WRITE_DATA_WIDTH_A/BYTE_WRITE_WIDTH_A-1:0] wea,
    input  logic [ADDR_WIDTH_A-1:0]                          addra,
    input  logic [WRITE_DATA_WIDTH_A-1:0]                    dina,
    input  logic                                             injectsbiterra,
    input  logic                                             injectdbiterra,
    output logic [READ_DATA_WIDTH_A-1:0]                     douta,
    output logic                                             sbiterra,
    output logic                                             dbiterra,
    input  logic                                             sleep
);
    if (ECC_MODE != "no_ecc") $error("ECC_MODE: only no_ecc is supported");
    if (AUTO_SLEEP_TIME != 0) $error("AUTO_SLEEP_TIME: only 0 is supported");
    if (WAKEUP_TIME != "disable_sleep") $error("WAKEUP_TIME: only disable_sleep is supported");
    if (MEMORY_INIT_PARAM != "0" && MEMORY_INIT_PARAM != "") $error("MEMORY_INIT_PARAM: only 0 is supported");
    if (READ_RESET_VALUE_A != "0") $error("READ_RESET_VALUE_A: only 0 is supported");
    if (RST_MODE_A != "SYNC") $error("RST_MODE_A: only SYNC is supported");
    if (READ_DATA_WIDTH_A != WRITE_DATA_WIDTH_A) $error("READ_DATA_WIDTH_A: is not WRITE_DATA_WIDTH_A");

    assign {sbiterra, dbiterra} = '0;
    nonic_memory #(
        .BITS(MEMORY_SIZE), .FILE(MEMORY_INIT_FILE),
        .WIDTH_A(WRITE_DATA_WIDTH_A), .BYTE_A(BYTE_WRITE_WIDTH_A), .ADDRESS_A(ADDR_WIDTH_A), .MODE_A(WRITE_MODE_A),
        .LATENCY_A(READ_LATENCY_A),
        .WIDTH_B(WRITE_DATA_WIDTH_A), .BYTE_B(WRITE_DATA_WIDTH_A), .ADDRESS_B(ADDR_WIDTH_A)
    ) memory (
        .clka, .rsta, .ena, .regcea, .wea, .addra, .dina, .douta,
        .clkb(clka), .rstb(1'b0), .enb(1'b0), .regceb(1'b0), .web(1'b0), .addrb('0), .dinb('0), .doutb());
endmodule
