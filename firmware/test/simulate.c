/* Runs a firmware image in simavr with its UART on standard input and output, and measures its stack.
 *
 *     simulate IMAGE [REPORT [EEPROM]]
 *
 * Ends with its input, and then writes `ram=BYTES stack=BYTES cycles=N` to REPORT: the bytes of static memory, and the deepest stack. What the
 * chip's EEPROM holds when its first byte is sent is kept in the file EEPROM, and is there again at the next start. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "avr_eeprom.h"
#include "avr_uart.h"
#include "sim_avr.h"
#include "sim_elf.h"

static avr_t *avr;
static avr_irq_t *into;
static int may_send = 1;
static const char *eeprom;

/* Reads the file into the chip, or writes the chip into the file. */
static void keep(const char *mode, uint32_t ioctl)
{
    uint8_t bytes[1024];
    avr_eeprom_desc_t whole = { bytes, 0, sizeof bytes };
    FILE *file = fopen(eeprom, mode);
    if (!file)
        return;
    if (*mode == 'r' ? fread(bytes, 1, sizeof bytes, file) == sizeof bytes : 1)
        avr_ioctl(avr, ioctl, &whole);
    if (*mode == 'w')
        fwrite(whole.ee, 1, sizeof bytes, file);
    fclose(file);
}

static void sent(struct avr_irq_t *irq, uint32_t value, void *param)
{
    uint8_t byte = (uint8_t)value;
    (void)irq, (void)param;
    if (eeprom)
        keep("w", AVR_IOCTL_EEPROM_GET);
    eeprom = 0;
    if (write(1, &byte, 1) != 1)
        exit(1);
}

static void room(struct avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)value;
    may_send = (int)(intptr_t)param;
}

/* Waits for a byte while the part has nothing to do. Returns 0 at the end of the input. */
static int feed(int patience)
{
    struct pollfd wait = { 0, POLLIN, 0 };
    uint8_t byte;
    ssize_t got;
    if (!may_send || poll(&wait, 1, patience) <= 0)
        return 1;
    got = read(0, &byte, 1);
    if (got == 1)
        avr_raise_irq(into, byte);
    return got == 1 || (got < 0 && errno == EINTR);
}

int main(int count, char **words)
{
    elf_firmware_t image = { 0 };
    uint32_t flags = 0;
    unsigned stack = 0xffff, turn = 0, idle = 0;
    FILE *report, *noise;
    if (count < 2 || elf_read_firmware(words[1], &image))
        return 2;
    avr = avr_make_mcu_by_name("atmega328p");
    if (!avr)
        return 2;
    avr_init(avr);
    avr->frequency = 16000000;
    avr_load_firmware(avr, &image);
    /* Memory is anything when the power comes. */
    noise = fopen("/dev/urandom", "rb");
    if (!noise || fread(avr->data + 0x100, 1, avr->ramend - 0xff, noise) != avr->ramend - 0xffu)
        return 2;
    fclose(noise);
    eeprom = count > 3 ? words[3] : 0;
    if (eeprom)
        keep("r", AVR_IOCTL_EEPROM_SET);
    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    flags &= ~(AVR_UART_FLAG_STDIO | AVR_UART_FLAG_POLL_SLEEP);
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    into = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), sent, 0);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XON), room, (void *)1);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XOFF), room, 0);
    for (;;) {
        int state = avr_run(avr);
        unsigned sp = avr->data[0x5d] | avr->data[0x5e] << 8;
        if (state == cpu_Done || state == cpu_Crashed)
            return 3;
        if (sp > image.datasize + image.bsssize && sp < stack)
            stack = sp;
        /* A byte of 115,200 baud takes 1,389 cycles. */
        if (++turn % 512 == 0 && !feed(++idle % 64 == 0))
            break;
    }
    report = count > 2 ? fopen(words[2], "w") : 0;
    if (report) {
        fprintf(report, "ram=%u stack=%u cycles=%llu\n", (unsigned)(image.datasize + image.bsssize), avr->ramend - stack, (unsigned long long)avr->cycle);
        fclose(report);
    }
    return 0;
}
