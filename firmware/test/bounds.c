/* A core on this machine, with a table that no program should have: `bounds` takes the bytes of a wire on standard input and answers on
 * standard output. Built once for each core, with the sanitizers of the compiler as the judge. */
#include <stdio.h>

#ifdef CORE_A
#include "stub_a.h"

static uint8_t answer(void)
{
    uint8_t i;
    for (i = 0; i < STUB_PAYLOAD - 1; i++)
        stub_payload[i] = i;
    return STUB_OK;
}

/* The answer leaves no room for its status. */
const stub_cmd_t stub_commands[] = { { 1, 0, STUB_PAYLOAD, answer }, { 2, 0, STUB_PAYLOAD - 1, answer } };
const uint8_t stub_command_count = 2;
#else
#include "stub_b.h"

static int16_t answer(const stub_int_t *args)
{
    stub_put_int(args[0]);
    return STUB_OK;
}

/* More arguments than a call has. */
const stub_tool_t stub_tools[] = { { 1, 5, { 0 }, STUB_INT, answer }, { 2, 4, { 0 }, STUB_INT, answer } };
const uint8_t stub_tool_count = 2;

uint8_t stub_port_start(void)
{
    return 1;
}
#endif

void stub_port_send(uint8_t byte)
{
    putchar(byte);
}

int main(void)
{
    int byte;
#ifndef CORE_A
    stub_begin();
#endif
    while ((byte = getchar()) != EOF)
#ifdef CORE_A
        stub_table_byte((uint8_t)byte);
#else
        stub_byte((uint8_t)byte);
#endif
    return 0;
}
