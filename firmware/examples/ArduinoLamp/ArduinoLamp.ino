// A lamp behind a Banyan gate, on an Arduino with an AVR: the tool 2 switches the LED of the board.
#include <stub_b.h>

static int16_t lamp(const stub_int_t *args) {
  digitalWrite(LED_BUILTIN, args[0] ? HIGH : LOW);
  stub_put_bool(args[0] != 0);
  return STUB_OK;
}

const stub_tool_t stub_tools[] PROGMEM = {
  { 2, 1, { STUB_BOOL }, STUB_BOOL, lamp },
};
const uint8_t stub_tool_count = sizeof stub_tools / sizeof stub_tools[0];

void stub_port_send(uint8_t byte) {
  Serial.write(byte);
}

void setup() {
  pinMode(LED_BUILTIN, OUTPUT);
  Serial.begin(115200);
  stub_begin();
}

void loop() {
  while (Serial.available()) {
    stub_byte(Serial.read());
  }
}
