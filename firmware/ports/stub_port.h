/* What a port of a chip offers beside stub_port_send. */
#ifndef STUB_PORT_H
#define STUB_PORT_H

#include <stdint.h>

void stub_port_send(uint8_t byte);
void stub_port_open(void);
/* Waits for a byte. */
uint8_t stub_port_receive(void);

#endif
