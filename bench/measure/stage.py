"""Everything that runs: upstreams, the floors, and the builds of Banyan. Knows no workloads."""
import contextlib
import json
import os
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from . import machine
from .generator import Generator
from .machine import GATEWAY_CORES, OTHER_CORES, Failure, Server, free_port, on

UPSTREAMS = 5
MANY_TOOLS = 10_000


@dataclass(frozen=True)
class Target:
    """Something that can be called: with the names its tools have there."""
    name: str
    server: Server
    mounts: int = 0

    def names(self, tool):
        return [f"u{i}__{tool}" for i in range(self.mounts)] if self.mounts else [tool]


class Stage:
    """Starts what is asked for, each thing once, and stops all of it at the end. `builds`: name to path of the binary."""

    def __init__(self, stack, work, log, builds, tool):
        self.stack, self.work, self.log, self.builds, self.tool = stack, Path(work), log, builds, tool
        self.made, self.generator = {}, Generator(tool)
        # nginx works as another user, who has to reach its folders.
        self.work.chmod(0o755)

    def once(self, key, make):
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def start(self, stack, name, command, port, **more):
        server = Server(name, command, port, self.log, **more)
        stack.callback(server.stop)
        return server

    def upstream(self, tools=0):
        def make():
            port = free_port()
            command = on(OTHER_CORES[-1:], [self.generator.tool, "upstream", "--listen", f"127.0.0.1:{port}", "--tools", str(tools)])
            return self.start(self.stack, f"upstream of {tools} tools", command, port)
        return self.once(("upstream", tools), make)

    def nginx(self, upstream, buffering="on"):
        def make():
            port = free_port()
            return self.start(self.stack, "nginx", self.nginx_command(port, upstream.port, buffering), port, children=True)
        return self.once(("nginx", upstream.port, buffering), make)

    def nginx_command(self, port, upstream, buffering="on"):
        folder = Path(tempfile.mkdtemp(dir=self.work))
        folder.chmod(0o777)
        conf = folder / "nginx.conf"
        conf.write_text(NGINX.format(folder=folder, port=port, upstream=upstream, buffering=buffering))
        return on(GATEWAY_CORES, [machine.nginx(), "-c", str(conf), "-p", str(folder), "-e", f"{folder}/error.log"])

    def pipe(self):
        """The floor of an upstream over standard input and output."""
        def make():
            port = free_port()
            command = [self.generator.tool, "pipe", "--listen", f"127.0.0.1:{port}", "--", *on(OTHER_CORES[-1:], [self.tool, "upstream-stdio"])]
            return self.start(self.stack, "bare pipe", on(GATEWAY_CORES, command), port)
        return self.once("pipe", make)

    def mounts(self, count=UPSTREAMS, tools=0, stdio=0):
        """Servers for an `mcpServers` file: the first `stdio` of them are processes, the others share one upstream.

        Each has an address of its own, because one server that is named twice is mounted once.
        """
        port = self.upstream(tools).port
        process = on(OTHER_CORES[-1:], [self.generator.tool, "upstream-stdio"])
        return {f"u{i}": {"command": process[0], "args": process[1:]} if i < stdio else
                {"type": "http", "url": f"http://127.0.0.1:{port}/mcp/{i}"} for i in range(count)}

    def banyan(self, build, mounts, cores=GATEWAY_CORES, stack=None):
        """A gateway in front of these servers, with all of them connected. It ends with `stack`, or with everything else."""
        name = f"{build} with {len(mounts)} upstreams"
        port, command, env = self.banyan_command(build, mounts, cores)
        server = self.start(stack or self.stack, name, command, port, env=env)
        end = time.monotonic() + 60
        while not ready(port):
            if time.monotonic() > end:
                raise Failure(f"{name} is not ready; see {self.log.name}")
            time.sleep(0.02)
        return server

    def banyan_command(self, build, mounts, cores=GATEWAY_CORES):
        port, home = free_port(), tempfile.mkdtemp(dir=self.work)
        file = Path(home) / "servers.json"
        file.write_text(json.dumps({"mcpServers": mounts}))
        env = {**{k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "BANYAN_"))}, "HOME": home}
        command = [self.builds[build], "up", "--from", str(file), "--listen", f"127.0.0.1:{port}", "--yes"]
        return port, on(cores, command), env

    def few(self):
        """The targets of most workloads: nothing between, nginx, and each build with one and with five upstreams."""
        def make():
            upstream = self.upstream()
            targets = [Target("direct", upstream), Target("nginx", self.nginx(upstream))]
            for build in self.builds:
                targets += [Target(f"{build} {n}", self.banyan(build, self.mounts(n)), n) for n in (1, UPSTREAMS)]
            return targets
        return self.once("few", make)

    def many(self):
        """The same in front of a server with many tools, which is one."""
        def make():
            upstream = self.upstream(MANY_TOOLS)
            targets = [Target("direct", upstream), Target("nginx", self.nginx(upstream))]
            return targets + [Target(f"{build} 1", self.banyan(build, self.mounts(1, MANY_TOOLS)), 1) for build in self.builds]
        return self.once("many", make)

    def events(self):
        """The same with an nginx that passes each event on when it comes."""
        direct, _, *gateways = self.few()
        return [direct, Target("nginx", self.nginx(direct.server, "off")), *gateways]

    def processes(self):
        """A server that is a process: behind the bare pipe, and as the first of five upstreams."""
        def make():
            gateways = [Target(f"{b} {UPSTREAMS}", self.banyan(b, self.mounts(stdio=1)), 1) for b in self.builds]
            return [Target("bare pipe", self.pipe()), *gateways]
        return self.once("processes", make)


def ready(port):
    with contextlib.suppress(OSError):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return answer.status == 200
    return False


NGINX = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  tcp_nodelay on;
  keepalive_requests 100000000;
  upstream mcp {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port} reuseport;
    client_body_buffer_size 128k;
    proxy_buffers 32 64k;
    location / {{
      proxy_pass http://mcp;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering {buffering};
    }}
  }}
}}
"""
