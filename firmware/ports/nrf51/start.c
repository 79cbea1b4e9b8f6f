/* Start of an nRF51: vectors, memory, and the count of starts, which outlasts a loss of power in the last two pages of the flash. One while a
 * word is written or a page is erased leaves words that do not hold together, and takes a count without a mark. */
#include "nrf51.h"
#include "stub_b.h"

enum { READ = 0, WRITE = 1, ERASE = 2 };
/* Words of a page, and of both. */
enum { PAGE = 256, WORDS = 2 * PAGE };
/* Counts before they begin anew: a whole number of rounds of the marks. */
#define ROUND 65535u
#define FREE 0xffffffffu

extern uint32_t flash_starts[], data_from[], data_begin[], data_end[], bss_end[], stack_top[];
extern int main(void);

uint8_t stub_port_start(void)
{
    volatile uint32_t *starts = flash_starts;
    /* Words to try for the next count; one less where a count was found. */
    uint16_t count = ROUND - 1, at, left = WORDS;
    uint32_t word;
    for (at = 0; at < WORDS; at++) {
        word = starts[at];
        /* A count and its complement: a write or an erasure that was cut off leaves too many ones. */
        if ((uint16_t)(word >> 16) != (uint16_t)~word)
            continue;
        if (left == WORDS || (int16_t)((uint16_t)word - count) > 0)
            count = (uint16_t)word;
        left = WORDS - 1;
    }
    /* The processor stands still while its flash is erased or written. */
    do {
        count = count == ROUND - 1 ? 0 : count + 1;
        at = count % WORDS;
        if (at % PAGE == 0) {
            NVMC_CONFIG = ERASE;
            NVMC_ERASEPAGE = (uint32_t)(starts + at);
        }
        /* A flash that takes no erasure any more keeps no count, and the part runs with a mark that may come again. */
    } while (starts[at] != FREE && --left);
    NVMC_CONFIG = WRITE;
    starts[at] = count | (uint32_t)(uint16_t)~count << 16;
    NVMC_CONFIG = READ;
    /* The rest by 255, without a division. */
    count = (count & 255) + (count >> 8);
    return (uint8_t)(count >= 255 ? count - 254 : count + 1);
}

static void start(void)
{
    const uint32_t *from = data_from;
    uint32_t *to;
    for (to = data_begin; to != bss_end; to++)
        *to = to < data_end ? *from++ : 0;
    main();
}

typedef union {
    uint32_t *stack;
    void (*run)(void);
} vector_t;

/* Nothing interrupts: stack, start, and two faults, behind which the part starts anew. */
__attribute__((section(".vectors"), used)) static const vector_t vectors[4] = {
    { .stack = stack_top }, { .run = start }, { .run = start }, { .run = start },
};
