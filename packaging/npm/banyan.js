#!/usr/bin/env node
// Starts the binary of this platform, which is a package of its own, and ends as the binary ends.
'use strict';

const { spawn } = require('node:child_process');

const name = `banyan-${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/banyan`);
} catch {
  console.error(`banyan: there is no package ${name}: this platform has no binary, or npm left optional packages out`);
  process.exit(1);
}
const child = spawn(binary, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`banyan: ${binary} can't be started: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => (signal ? process.kill(process.pid, 'SIGKILL') : process.exit(code)));
