// SPDX-License-Identifier: BSD-2-Clause
//
// xpm_memory_tdpram - a stand-in for Xilinx' true dual-port memory: both ports write and read.
module xpm_memory_tdpram #(
    parameter int    ADDR_WIDTH_A            = 6,
    parameter int    ADDR_WIDTH_B            = 6,
    parameter int    AUTO_SLEEP_TIME         = 0,
    parameter int    BYTE_WRITE_WIDTH_A      = 32,
    parameter int    BYTE_WRITE_WIDTH_B      = 32,
    parameter int    CASCADE_HEIGHT          = 0,
    parameter string CLOCKING_MODE           = "common_clock",
    parameter string ECC_BIT_RANGE           = "7:0",
    parameter string ECC_MODE                = "no_ecc",
    parameter string ECC_TYPE                = "none",
    parameter int    IGNORE_INIT_SYNTH       = 0,
    parameter string MEMORY_INIT_FILE        = "none",
    parameter string MEMORY_INIT_PARAM       = "0",
    parameter string MEMORY_OPTIMIZATION     = "true",
    parameter string MEMORY_PRIMITIVE        = "auto",
    parameter int    MEMORY_SIZE             = 2048,
    parameter int    MESSAGE_CONTROL         = 0,
    parameter string RAM_DECOMP              = "auto",
    parameter int    READ_DATA_WIDTH_A       = 32,
    parameter int    READ_DATA_WIDTH_B       = 32,
    parameter int    READ_LATENCY_A          = 2,
    parameter int    READ_LATENCY_B          = 2,
    parameter string READ_RESET_VALUE_A      = "0",
    parameter string READ_RESET_VALUE_B      = "0",
    parameter string RST_MODE_A              = "SYNC",
    parameter string RST_MODE_B              = "SYNC",
    parameter int    SIM_ASSERT_CHK          = 0,
    parameter int    USE_EMBEDDED_CONSTRAINT = 0,
    parameter int    USE_MEM_INIT            = 1,
    parameter int    USE_MEM_INIT_MMI        = 0,
    parameter string WAKEUP_TIME             = "disable_sleep",
    parameter int    WRITE_DATA_WIDTH_A      = 32,
    parameter int    WRITE_DATA_WIDTH_B      = 32,
    parameter string WRITE_MODE_A            = "no_change",
    parameter string WRITE_MODE_B            = "no_change",
    parameter int    WRITE_PROTECT           = 1
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
    input  logic                                             clkb,
    input  logic                                             rstb,
    input  logic                                             enb,
    input  logic                                             regceb,
    input  logic [WRITE_DATA_WIDTH_B/BYTE_WRITE_WIDTH_B-1:0] web,
    input  logic [ADDR_WIDTH_B-1:0]                          addrb,
    input  logic [WRITE_DATA_WIDTH_B-1:0]                    dinb,
    input  logic                                             injectsbiterrb,
    input  logic                                             injectdbiterrb,
    output logic [READ_DATA_WIDTH_B-1:0]                     doutb,
    output logic                                             sbiterrb,
    output logic                                             dbiterrb,
    input  logic                                             sleep
);
    if (ECC_MODE != "no_ecc") $error("ECC_MODE: only no_ecc is supported");
    if (AUTO_SLEEP_TIME != 0) $error("AUTO_SLEEP_TIME: only 0 is supported");
    if (WAKEUP_TIME != "disable_sleep") $error("WAKEUP_TIME: only disable_sleep is supported");
    if (MEMORY_INIT_PARAM != "0" && MEMORY_INIT_PARAM != "") $error("MEMORY_INIT_PARAM: only 0 is supported");
    if (READ_RESET_VALUE_A != "0") $error("READ_RESET_VALUE_A: only 0 is supported");
    if (READ_RESET_VALUE_B != "0") $error("READ_RESET_VALUE_B: only 0 is supported");
    if (RST_MODE_A != "SYNC") $error("RST_MODE_A: only SYNC is supported");
    if (RST_MODE_B != "SYNC") $error("RST_MODE_B: only SYNC is supported");
    if (READ_DATA_WIDTH_A != WRITE_DATA_WIDTH_A) $error("READ_DATA_WIDTH_A: is not WRITE_DATA_WIDTH_A");
    if (READ_DATA_WIDTH_B != WRITE_DATA_WIDTH_B) $error("READ_DATA_WIDTH_B: is not WRITE_DATA_WIDTH_B");
    if (CLOCKING_MODE != "common_clock" && CLOCKING_MODE != "independent_clock") begin : clocks
        $error("CLOCKING_MODE: is neither common_clock nor independent_clock");
    end

    assign {sbiterra, dbiterra, sbiterrb, dbiterrb} = '0;
    nonic_memory #(
        .BITS(MEMORY_SIZE), .COMMON(CLOCKING_MODE == "common_clock"), .FILE(MEMORY_INIT_FILE),
        .WIDTH_A(WRITE_DATA_WIDTH_A), .BYTE_A(BYTE_WRITE_WIDTH_A), .ADDRESS_A(ADDR_WIDTH_A), .MODE_A(WRITE_MODE_A),
        .WIDTH_B(WRITE_DATA_WIDTH_B), .BYTE_B(BYTE_WRITE_WIDTH_B), .ADDRESS_B(ADDR_WIDTH_B), .MODE_B(WRITE_MODE_B),
        .LATENCY_A(READ_LATENCY_A), .LATENCY_B(READ_LATENCY_B)
    ) memory (
        .clka, .rsta, .ena, .regcea, .wea, .addra, .dina, .douta,
        .clkb(CLOCKING_MODE == "common_clock" ? clka : clkb), .rstb, .enb, .regceb, .web, .addrb, .dinb, .doutb);
endmodule
