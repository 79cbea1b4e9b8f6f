/* Profile B. One buffer for what comes, one for what goes; the answer of the last call stays in the latter. */
#include "stub_b.h"

#ifdef __AVR__
#include <avr/pgmspace.h>
#define FLASH_BYTE(address) pgm_read_byte(address)
#define FLASH_HANDLER(address) ((stub_handler_t)pgm_read_word(address))
#else
#define FLASH_BYTE(address) (*(const uint8_t *)(address))
#define FLASH_HANDLER(address) (*(address))
#endif

enum { CALL = 1, RESPONSE = 2, TABLE = 3, HEARTBEAT = 4 };
enum { ASK_FIRST = -1, NO_SUCH_TOOL = -32601 };

static uint8_t in[STUB_SIZE];
static uint8_t out[STUB_SIZE];
/* Bytes decoded so far; 0xff: the frame is dropped to its end. */
static uint8_t in_len;
static uint8_t out_len;
/* Bytes left in a block of COBS, and whether a zero follows the block. */
static uint8_t block;
static uint8_t zero_follows;
/* Number of the last call, once the gate has asked for the table; 0 before. */
static uint8_t last;
/* Mark of this start: a question from before has another mark, and does not count. */
static uint8_t boot;
/* The answer in `out` is that of `last`. */
static uint8_t is_kept;
/* Place of the reader in `in`, and the end of the message. */
static uint8_t at;
static uint8_t end;

/* CRC-16/IBM-3740; 0 over a message with its checksum. */
static uint16_t crc(const uint8_t *bytes, uint8_t length)
{
    uint16_t sum = 0xffff;
    uint8_t x;
    while (length--) {
        x = (uint8_t)(sum >> 8) ^ *bytes++;
        x ^= x >> 4;
        sum = (uint16_t)(sum << 8) ^ ((uint16_t)x << 12) ^ ((uint16_t)x << 5) ^ x;
    }
    return sum;
}

static void put(uint8_t byte)
{
    /* Two bytes stay free for the checksum. */
    if (out_len < STUB_SIZE - 2)
        out[out_len] = byte;
    /* One beyond says that it did not fit. */
    if (out_len < STUB_SIZE - 1)
        out_len++;
}

static void put_head(uint8_t major, stub_uint_t value)
{
    major <<= 5;
    if (value < 24) {
        put(major | (uint8_t)value);
        return;
    }
#ifdef STUB_WIDE
    if (value > 0xffff) {
        put(major | 26);
        put((uint8_t)(value >> 24));
        put((uint8_t)(value >> 16));
        put((uint8_t)(value >> 8));
    } else
#endif
    if (value > 0xff) {
        put(major | 25);
        put((uint8_t)(value >> 8));
    } else
        put(major | 24);
    put((uint8_t)value);
}

void stub_put_map(uint8_t pairs)
{
    put_head(STUB_MAP, pairs);
}

void stub_put_int(stub_int_t value)
{
    if (value < 0)
        put_head(1, (stub_uint_t)~value);
    else
        put_head(0, (stub_uint_t)value);
}

void stub_put_bool(uint8_t truth)
{
    put(truth ? 0xf5 : 0xf4);
}

/* Puts a member whose value is a small number. */
static void member(uint8_t key, uint8_t value)
{
    put(key);
    put_head(0, value);
}

/* Begins a message: type, map, and a number, which a part that was not asked yet does not have. */
static void begin(uint8_t type, uint8_t pairs, uint8_t seq)
{
    out_len = 0;
    put(type);
    put_head(STUB_MAP, seq ? pairs + 1 : pairs);
    if (seq)
        member(2, seq);
}

/* Sends `out` with its checksum, stuffed. */
static void send(void)
{
    uint16_t sum = crc(out, out_len);
    uint8_t length = out_len + 2, from = 0, i;
    out[length - 2] = (uint8_t)(sum >> 8);
    out[length - 1] = (uint8_t)sum;
    do {
        for (i = from; i < length && out[i]; i++)
            ;
        stub_port_send(i - from + 1);
        for (; from < i; from++)
            stub_port_send(out[from]);
    } while (from++ < length);
    stub_port_send(0);
}

static void fail(uint8_t seq, int16_t code)
{
    begin(RESPONSE, 1, seq);
    put(5);
    stub_put_int(code);
    send();
}

/* Next byte of the message; 0xff, which parts do not use, behind its end. */
static uint8_t next(void)
{
    return at < end ? in[at++] : 0xff;
}

/* Checks for this byte, and goes on behind it. */
static uint8_t is_next(uint8_t byte)
{
    if (at >= end || in[at] != byte)
        return 0;
    at++;
    return 1;
}

/* Reads a head: its value goes to `into`. Returns the major type; 7 for all that parts do not use. */
static uint8_t head(stub_uint_t *into)
{
    uint8_t first = next(), size = first & 31;
    stub_uint_t value = size;
    if (size >= 24) {
        size -= 23;
        if (size == 3)
            size = 4;
        if (size > sizeof value)
            return 7;
        for (value = 0; size; size--)
            value = value << 8 | next();
    }
    *into = value;
    return first >> 5;
}

/* Reads a small number. Returns 0 for all else. */
static uint8_t small(void)
{
    stub_uint_t value;
    return head(&value) == 0 && value < 256 ? (uint8_t)value : 0;
}

/* Reads an argument of this kind. */
static uint8_t argument(uint8_t kind, stub_int_t *into)
{
    stub_uint_t value;
    uint8_t major;
    if (kind == STUB_BOOL) {
        *into = is_next(0xf5);
        return *into || is_next(0xf4);
    }
    major = head(&value);
    if (major > kind || major == 7 || (stub_int_t)value < 0)
        return 0;
    *into = (stub_int_t)value;
    if (major)
        *into = ~*into;
    return 1;
}

static void table(uint8_t first)
{
    uint8_t i, args, row, begun;
    const stub_tool_t *tool;
    /* Rows that fit: the longest has 13 bytes, and 22 go to all else. */
    if (first > stub_tool_count)
        first = stub_tool_count;
    row = begun = first;
    while (row < stub_tool_count && row - first < (STUB_SIZE - 22) / 13)
        row++;
    begin(TABLE, 3 + (row < stub_tool_count) + (begun != 0), last);
    member(6, STUB_SIZE);
    put(7);
    put_head(STUB_ARRAY, row - first);
    for (tool = stub_tools + first; first < row; first++, tool++) {
        args = FLASH_BYTE(&tool->arg_count);
        put_head(STUB_ARRAY, 2 + args);
        put_head(0, FLASH_BYTE(&tool->tool));
        put_head(0, FLASH_BYTE(&tool->ret_type));
        for (i = 0; i < args && i < 4; i++)
            put_head(0, FLASH_BYTE(&tool->arg_types[i]));
    }
    if (row < stub_tool_count)
        member(10, row);
    member(11, boot);
    if (begun)
        member(12, begun);
    is_kept = 0;
    send();
}

void stub_begin(void)
{
    boot = stub_port_start();
    table(0);
}

/* Runs a call whose arguments follow in `in`, and puts its answer. */
static int16_t run(const stub_tool_t *tool)
{
    stub_int_t args[4];
    uint8_t i, count = FLASH_BYTE(&tool->arg_count);
    if (count > 4)
        return STUB_FAILED;
    if (count && !(is_next(3) && is_next(0xa0 | count)))
        return STUB_BAD_ARGUMENT;
    for (i = 0; i < count; i++)
        if (!is_next(i) || !argument(FLASH_BYTE(&tool->arg_types[i]), &args[i]))
            return STUB_BAD_ARGUMENT;
    if (at != end)
        return STUB_BAD_ARGUMENT;
    return FLASH_HANDLER(&tool->handler)(args);
}

/* Checks that a number comes after the last one. */
static uint8_t is_newer(uint8_t seq)
{
    return !last || (int8_t)(seq - last) > 0;
}

static void call(uint8_t number, uint8_t seq)
{
    uint8_t i;
    int16_t code = NO_SUCH_TOOL;
    const stub_tool_t *tool = stub_tools;
    if (!last) {
        fail(seq, ASK_FIRST);
        return;
    }
    if (seq == last && is_kept) {
        send();
        return;
    }
    /* What comes late was run already, or was given up by the gate. */
    if (!is_newer(seq))
        return;
    last = seq;
    is_kept = 1;
    begin(RESPONSE, 1, seq);
    put(4);
    for (i = stub_tool_count; i; i--, tool++)
        if (FLASH_BYTE(&tool->tool) == number) {
            code = run(tool);
            break;
        }
    /* The word of a part that was not asked yet is no word of a handler. */
    if (out_len > STUB_SIZE - 2 || code == ASK_FIRST)
        code = STUB_FAILED;
    if (code)
        fail(seq, code);
    else
        send();
}

/* Reads the member with this key, a small number. Returns 0 where it is absent. */
static uint8_t member_at(uint8_t key)
{
    return is_next(key) ? small() : 0;
}

/* Takes the message in `in`: its type, its map, and the members 1, 2, 10 and 11 in their order. */
static void message(void)
{
    uint8_t type = in[0], number, seq, mark;
    at = 2;
    number = member_at(1);
    seq = member_at(2);
    if (type == CALL) {
        if (number && seq)
            call(number, seq);
        return;
    }
    number = member_at(10);
    mark = member_at(11);
    /* More is the word of a part, and so is a mark in a heartbeat: its own, where the line brings it back. */
    if (at < end)
        return;
    if (type == TABLE) {
        /* What the gate sent before it asked so does not run any more. */
        if (seq && mark == boot && is_newer(seq))
            last = seq;
        table(number);
    } else if (type == HEARTBEAT && seq && !mark) {
        begin(HEARTBEAT, 1, seq);
        member(11, boot);
        is_kept = 0;
        send();
    }
}

static void take(uint8_t byte)
{
    if (in_len < STUB_SIZE)
        in[in_len++] = byte;
    else
        in_len = 0xff;
}

void stub_byte(uint8_t byte)
{
    if (!byte) {
        /* A block that is not full was cut off. */
        if (!block && in_len > 2 && in_len <= STUB_SIZE && !crc(in, in_len)) {
            end = in_len - 2;
            message();
        }
        in_len = block = zero_follows = 0;
    } else if (block) {
        block--;
        take(byte);
    } else {
        if (zero_follows)
            take(0);
        block = byte - 1;
        zero_follows = byte != 0xff;
    }
}
