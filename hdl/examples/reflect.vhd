-- SPDX-License-Identifier: BSD-2-Clause
--
-- reflect - sends each frame back with its addresses changed over.
--
-- Two beats are held: the addresses are in the first two.
library ieee;
use ieee.std_logic_1164.all;

entity reflect is
    port (
        clk           : in  std_logic;
        rst           : in  std_logic;
        s_axis_tdata  : in  std_logic_vector(63 downto 0);
        s_axis_tkeep  : in  std_logic_vector(7 downto 0);
        s_axis_tvalid : in  std_logic;
        s_axis_tready : out std_logic;
        s_axis_tlast  : in  std_logic;
        s_axis_tuser  : in  std_logic;
        m_axis_tdata  : out std_logic_vector(63 downto 0);
        m_axis_tkeep  : out std_logic_vector(7 downto 0);
        m_axis_tvalid : out std_logic;
        m_axis_tready : in  std_logic;
        m_axis_tlast  : out std_logic;
        m_axis_tuser  : out std_logic
    );
end entity;

architecture rtl of reflect is
    -- A beat: user, last, keep, data.
    type beats is array (0 to 1) of std_logic_vector(73 downto 0);
    signal held    : beats;
    signal full_0  : std_logic := '0';
    signal full_1  : std_logic := '0';
    signal first   : std_logic := '1';  -- held(0) begins a frame
    signal swapped : std_logic := '0';  -- the first two beats have been changed over
    signal leaves, moves : std_logic;
    signal valid   : std_logic;
begin
    valid <= full_0 and (full_1 or held(0)(72)) and (swapped or not first);
    leaves <= valid and m_axis_tready;
    moves  <= full_1 and (leaves or not full_0);
    s_axis_tready <= not full_1;

    m_axis_tdata  <= held(0)(63 downto 0);
    m_axis_tkeep  <= held(0)(71 downto 64);
    m_axis_tlast  <= held(0)(72);
    m_axis_tuser  <= held(0)(73);
    m_axis_tvalid <= valid;

    process (clk)
    begin
        if rising_edge(clk) then
            if s_axis_tvalid = '1' and full_1 = '0' then
                held(1) <= s_axis_tuser & s_axis_tlast & s_axis_tkeep & s_axis_tdata;
                full_1  <= '1';
            end if;
            if moves = '1' then
                held(0) <= held(1);
                full_0  <= '1';
                full_1  <= '0';
            elsif leaves = '1' then
                full_0  <= '0';
            end if;
            if leaves = '1' then
                first   <= held(0)(72);
                swapped <= '0';
            elsif full_0 = '1' and full_1 = '1' and first = '1' and swapped = '0' then
                -- Octets 0 to 5 and 6 to 11.
                held(0)(47 downto 0)  <= held(1)(31 downto 0) & held(0)(63 downto 48);
                held(0)(63 downto 48) <= held(0)(15 downto 0);
                held(1)(31 downto 0)  <= held(0)(47 downto 16);
                swapped <= '1';
            end if;
            if rst = '1' then
                full_0  <= '0';
                full_1  <= '0';
                first   <= '1';
                swapped <= '0';
            end if;
        end if;
    end process;
end architecture;
