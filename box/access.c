/* SPDX-License-Identifier: BSD-2-Clause */
#include "box/access.h"

#include <Zydis/Zydis.h>
#include <string.h>

#include "base/check.h"

/* The register's value, if it is one of the general ones. */
static bool register_value(ZydisRegister name, const registers *at, uint64_t *value)
{
    const uint64_t general[16] = {at->rax, at->rcx, at->rdx, at->rbx, at->rsp, at->rbp,
                                  at->rsi, at->rdi, at->r8,  at->r9,  at->r10, at->r11,
                                  at->r12, at->r13, at->r14, at->r15};
    if (name >= ZYDIS_REGISTER_RAX && name <= ZYDIS_REGISTER_R15) {
        *value = general[name - ZYDIS_REGISTER_RAX];
        return true;
    }
    if (name >= ZYDIS_REGISTER_EAX && name <= ZYDIS_REGISTER_R15D) {
        *value = (uint32_t)general[name - ZYDIS_REGISTER_EAX];
        return true;
    }
    *value = 0;
    return name == ZYDIS_REGISTER_NONE;
}

static bool address_of(const ZydisDecodedInstruction *instruction,
                       const ZydisDecodedOperand *operand, const registers *at, uint64_t *address)
{
    uint64_t base, index;
    if (operand->mem.base == ZYDIS_REGISTER_RIP) {
        base = at->rip + instruction->length;
    } else if (!register_value(operand->mem.base, at, &base)) {
        return false;
    }
    if (!register_value(operand->mem.index, at, &index)) {
        return false;
    }
    *address = base + index * operand->mem.scale;
    if (operand->mem.disp.has_displacement) {
        *address += (uint64_t)operand->mem.disp.value;
    }
    if (instruction->address_width == 32) {
        *address = (uint32_t)*address;
    }
    if (operand->mem.segment == ZYDIS_REGISTER_FS) {
        *address += at->fs_base;
    } else if (operand->mem.segment == ZYDIS_REGISTER_GS) {
        *address += at->gs_base;
    }
    return true;
}

static bool add_word(struct instruction_access *access, const ZydisDecodedInstruction *instruction,
                     const ZydisDecodedOperand *operand, const registers *at)
{
    const uint32_t bytes = operand->size / 8;
    uint64_t address;
    if (operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
        return true;
    }
    if (operand->mem.type != ZYDIS_MEMOP_TYPE_MEM || bytes == 0 || bytes > ACCESS_BYTES_MAX ||
        access->words == ACCESS_WORDS_MAX || !address_of(instruction, operand, at, &address)) {
        return false;
    }
    /* A push writes below the stack pointer, and Zydis names the pointer as it was. */
    if (operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
        operand->mem.base == ZYDIS_REGISTER_RSP &&
        (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) {
        address -= bytes;
    }
    access->word[access->words++] = (struct access_word){
        address, bytes, (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0,
        (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0};
    return true;
}

/* Instructions whose results do not follow from registers and memory, or that do more than they
 * name. */
static bool is_of_its_own_mind(const ZydisDecodedInstruction *instruction)
{
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
    case ZYDIS_MNEMONIC_RDPMC:
    case ZYDIS_MNEMONIC_RDPID:
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_XGETBV:
    case ZYDIS_MNEMONIC_TPAUSE:
    case ZYDIS_MNEMONIC_UMWAIT: return true;
    default:
        return (instruction->attributes &
                (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
    }
}

static bool is_call(const ZydisDecodedInstruction *instruction)
{
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP: return true;
    default: return false;
    }
}

static const ZydisDecoder *the_decoder(void)
{
    static ZydisDecoder decoder;
    static bool is_ready;
    if (!is_ready) {
        is_ready = ZYAN_SUCCESS(
            ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
        CHECK(is_ready);
    }
    return &decoder;
}

size_t access_bytes(const uint8_t *code, size_t bytes)
{
    ZydisDecodedInstruction instruction;
    return ZYAN_SUCCESS(
               ZydisDecoderDecodeInstruction(the_decoder(), NULL, code, bytes, &instruction))
               ? instruction.length
               : 0;
}

struct instruction_access access_of(const uint8_t *code, size_t bytes, const registers *at)
{
    struct instruction_access access = {0};
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(the_decoder(), code, bytes, &instruction, operands))) {
        return access;
    }
    access.is_call = is_call(&instruction);
    access.is_return = instruction.mnemonic == ZYDIS_MNEMONIC_RET;
    if (access.is_call || is_of_its_own_mind(&instruction)) {
        return access;
    }
    for (int i = 0; i < instruction.operand_count; i++) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            !add_word(&access, &instruction, &operands[i], at)) {
            return access;
        }
    }
    access.known = true;
    return access;
}

int access_clock_bytes(const uint8_t *code, size_t bytes)
{
    if (bytes >= 2 && code[0] == 0x0f && code[1] == 0x31) {
        return 2;
    }
    return bytes >= 3 && code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9 ? 3 : 0;
}
