/* A part of profile A: a table of numbered commands in ROM (MCP-AX B.1; docs/stubs.md). C99, no heap, no CBOR.
 *
 * The gate's configuration says what the bytes of a command mean. Between frames the part keeps one byte: the number of the last call. */
#ifndef STUB_A_H
#define STUB_A_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest payload of the table, both ways, status included. */
#ifndef STUB_PAYLOAD
#define STUB_PAYLOAD 8
#endif
#if STUB_PAYLOAD < 1 || STUB_PAYLOAD > 249
#error "STUB_PAYLOAD is 1 to 249"
#endif

/* SDCC passes two pointers through a function pointer only where functions are reentrant; one shared buffer needs neither. */
#ifdef __SDCC
#define STUB_ROM __code
#else
#define STUB_ROM
#endif

#define STUB_OK 0
#define STUB_BAD_ARGUMENT 2
#define STUB_BUSY 4
#define STUB_FAILED 5

/* A frame without its start and its checksum: length, type, command, number, payload. */
extern uint8_t stub_frame[4 + STUB_PAYLOAD];

/* Request before a handler runs, and answer behind it. */
#define stub_payload (stub_frame + 4)

/* Runs the command and returns its status. */
typedef uint8_t (*stub_handler_t)(void);

typedef struct {
    uint8_t cmd_id; /* never 0 */
    uint8_t req_len;
    uint8_t resp_len; /* below STUB_PAYLOAD: the status follows */
    stub_handler_t handler;
} stub_cmd_t;

/* The program's table, in flash. */
extern const STUB_ROM stub_cmd_t stub_commands[];
extern const STUB_ROM uint8_t stub_command_count;

/* The port: sends one byte. */
void stub_port_send(uint8_t byte);

/* Takes a byte of the wire, and answers when it ends a frame. */
void stub_table_byte(uint8_t byte);

/* Forgets a frame that was cut off: for ports that notice a silence of five milliseconds. */
void stub_table_silence(void);

#ifdef __cplusplus
}
#endif

#endif
