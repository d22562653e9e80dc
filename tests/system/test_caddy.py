#!/usr/bin/env python3
"""
Caddy in front of a gateway, with the very file of deploy/proxies: what clients
get when a check is allowed, denied, failed or not answered, and that a key of
theirs is no more than a key.
"""

import os

import harness
import proxies
from harness import same
from proxies import World, field, limited

# In a file of one's own they would be at its top.
OPTIONS = """{
	admin off
	auto_https off
}
"""


class Caddy(proxies.Proxy):
    def __init__(self, world, pairs=(), patient=True):
        self.world, self.pairs = world, list(pairs)
        self.folder = os.path.join(world.lab.path, "caddy")
        os.makedirs(self.folder, exist_ok=True)
        if patient:
            self.pairs.append(("response_header_timeout 500ms",
                               "response_header_timeout " + proxies.PATIENT))
        super().__init__(world.lab, "caddy", self.configure, {
            "HOME": self.folder, "XDG_CONFIG_HOME": self.folder,
            "XDG_DATA_HOME": self.folder})

    def configure(self, port):
        path = os.path.join(self.folder, "Caddyfile-%d" % port)
        with open(path, "w", encoding="utf-8") as f:
            f.write(OPTIONS + proxies.replaced(proxies.read("Caddyfile"), [
                (":80 {", "http://:%d {\n\tbind 127.0.0.1" % port),
                ("127.0.0.1:8080",
                 "127.0.0.1:%d" % self.world.origin.port),
                ("/run/rl-agent/front.sock", self.world.socket("front"))] +
                self.pairs))
        return [proxies.program("caddy"), "run", "--adapter", "caddyfile",
                "--config", path]


def keyed(world):
    """The key is what the client sends."""
    return Caddy(world, [("ratelimit checkout {remote_host}",
                          "ratelimit checkout {header.X-Customer}")])


def test_decisions(lab):
    """200 and 429 with what the client should know, whatever it sends."""
    world = World(lab)
    proxies.decisions(world, Caddy(world))


def test_origin(lab):
    """What the origin answers is left alone, errors too."""
    world = World(lab, limits={"checkout": 100, "login": 1})
    proxies.origin_is_left_alone(world, Caddy(world))


def test_servers_dead(lab):
    """No server answers: the policy of the rule decides, over HTTP, too."""
    world = World(lab, policy=harness.SHORT)
    proxies.servers_dead(world, Caddy(world))


def test_agent_gone(lab):
    """No agent: requests go through, or not, as the path says."""
    world = World(lab)
    caddy = Caddy(world)
    same(caddy.ask("/login").status, 200)
    same(world.agent.stop(), 0)
    proxies.unanswered(world, caddy)
    world.agent = world.start()
    limited(caddy.ask("/login"), "login", 1)


def test_agent_stalled(lab):
    """The agent takes connections and does not answer: the same, in time."""
    world = World(lab)
    proxies.stalled(world, Caddy(world, patient=False))


def test_keys_are_data(lab):
    """Nothing that a client puts in its key is more than a key."""
    world = World(lab)
    proxies.keys_are_data(world, keyed(world), (400,))


def test_any_byte(lab):
    """No byte of a key makes it go through unasked."""
    world = World(lab, limits={"checkout": 1, "login": 1})
    proxies.any_byte(keyed(world))


def test_long_heads(lab):
    """What else the client sends goes along, up to what a gateway takes."""
    world = World(lab)
    caddy = Caddy(world)
    for size in (100000, 200000, 500000, 1000000):
        same(caddy.statuses("/", fields={"Cookie": "x" * size}), [431], size)
    same(world.origin.count(), 0)
    answer = caddy.ask("/", fields={"Cookie": "x" * 20000})
    same((answer.status, field(answer, "RateLimit")),
         (200, '"checkout.0";r=1'))


def test_connections_are_kept(lab):
    """One connection to the agent serves one request after the other."""
    world = World(lab, limits={"checkout": 5, "login": 1})
    caddy = Caddy(world)
    before = world.counter("http_connections")
    same([caddy.ask("/").status for _ in range(20)], [200] * 5 + [429] * 15)
    same(world.counter("http_connections") - before, 1)


def test_restart(lab):
    """The agent restarts under load: nobody is refused."""
    world = World(lab, limits={"checkout": 1000000, "login": 1})
    proxies.restarts(world, Caddy(world), lambda answer: answer.status == 200)


if __name__ == "__main__":
    harness.run([test_decisions, test_origin, test_servers_dead,
                 test_agent_gone, test_agent_stalled, test_keys_are_data,
                 test_any_byte, test_long_heads, test_connections_are_kept,
                 test_restart])
