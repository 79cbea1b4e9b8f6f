/* A part of profile B: describes itself in CBOR (MCP-AX 8.2 and B.2; docs/stubs.md). C99, no heap.
 *
 * The program gives a table of tools and two functions of its port; it calls stub_byte for each byte of the wire. Nothing here knows names,
 * schemas, JSON or callers: the gate does. */
#ifndef STUB_B_H
#define STUB_B_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a message with its checksum, both ways. A row of the table and all around it has 35, and the length is a byte below 255. */
#ifndef STUB_SIZE
#define STUB_SIZE 64
#endif
#if STUB_SIZE < 35 || STUB_SIZE > 254
#error "STUB_SIZE is 35 to 254"
#endif

/* Kinds of values in the table. */
#define STUB_UINT 0
#define STUB_INT 1
#define STUB_BYTES 2
#define STUB_TEXT 3
#define STUB_ARRAY 4
#define STUB_MAP 5
#define STUB_BOOL 0xf4
#define STUB_NULL 0xf6

/* What a handler returns. 0: done. Below: a code that the caller is told. */
#define STUB_OK 0
#define STUB_BAD_ARGUMENT (-32602)
#define STUB_FAILED (-32603)

/* Whole numbers of arguments and answers: 16 bits, or 32 with STUB_WIDE, which takes 300 bytes of flash on an AVR. */
#ifdef STUB_WIDE
typedef int32_t stub_int_t;
typedef uint32_t stub_uint_t;
#else
typedef int16_t stub_int_t;
typedef uint16_t stub_uint_t;
#endif

/* Runs the tool. `args` has the arguments by place, whole numbers only (bool: 0 or 1; uint: never above the largest int). Puts its answer
 * with stub_put_*: one value, of the kind in the table. */
typedef int16_t (*stub_handler_t)(const stub_int_t *args);

typedef struct {
    uint8_t tool; /* never 0 */
    uint8_t arg_count; /* 4 at most */
    uint8_t arg_types[4];
    uint8_t ret_type;
    stub_handler_t handler;
} stub_tool_t;

/* The program's table, in flash. */
extern const stub_tool_t stub_tools[];
extern const uint8_t stub_tool_count;

/* The port: sends one byte. */
void stub_port_send(uint8_t byte);

/* The port: gives the mark of this start, never 0. A mark comes again after 255 starts at the earliest, and so is kept over a loss of
 * power before it is given. */
uint8_t stub_port_start(void);

/* Says that the part is here, once after its start. */
void stub_begin(void);

/* Takes a byte of the wire, and answers when it ends a frame. */
void stub_byte(uint8_t byte);

/* For handlers: the answer. A map is its head and then a key and a value each. */
void stub_put_map(uint8_t pairs);
void stub_put_int(stub_int_t value);
void stub_put_bool(uint8_t truth);

#ifdef __cplusplus
}
#endif

#endif
