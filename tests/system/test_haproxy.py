#!/usr/bin/env python3
"""
HAProxy in front of a gateway, with the very files of deploy/proxies: what
clients get when a check is allowed, denied, failed or not answered, and that a
key of theirs is no more than a key.
"""

import os

import harness
import proxies
from harness import poll, same
from proxies import World


class Haproxy(proxies.Proxy):
    def __init__(self, world, pairs=(), timeout_ms=90000):
        self.world, self.pairs, self.timeout_ms = world, list(pairs), timeout_ms
        super().__init__(world.lab, "haproxy", self.configure)

    def configure(self, port):
        gateway = ("/run/rl-agent/front.sock", self.world.socket("front"))
        lua = os.path.join(self.world.lab.path, "haproxy.lua")
        with open(lua, "w", encoding="utf-8") as f:
            f.write(proxies.replaced(proxies.read("haproxy.lua"), [
                gateway, ("timeout_ms = 200",
                          "timeout_ms = %d" % self.timeout_ms)]))
        config = os.path.join(self.world.lab.path, "haproxy.cfg")
        with open(config, "w", encoding="utf-8") as f:
            f.write(proxies.replaced(proxies.read("haproxy.cfg"), [
                gateway, ("bind :80", "bind 127.0.0.1:%d" % port),
                ("127.0.0.1:8080",
                 "127.0.0.1:%d" % self.world.origin.port),
                ("/etc/haproxy/haproxy.lua", lua)] + self.pairs))
        return [proxies.program("haproxy"), "-db", "-f", config]


def keyed(world):
    """The key is what the client sends."""
    return Haproxy(world, [("txn.ratelimit_key) %[src]",
                            "txn.ratelimit_key) %[req.fhdr(x-customer)]")])


def test_decisions(lab):
    """200 and 429 with what the client should know, whatever it sends."""
    world = World(lab)
    proxies.decisions(world, Haproxy(world))


def test_origin(lab):
    """What the origin answers is left alone, errors too."""
    world = World(lab, limits={"checkout": 100, "login": 1})
    proxies.origin_is_left_alone(world, Haproxy(world))


def test_servers_dead(lab):
    """No server answers: the policy of the rule decides, over HTTP, too."""
    world = World(lab, policy=harness.SHORT)
    proxies.servers_dead(world, Haproxy(world))


def test_agent_gone(lab):
    """No agent: requests go through, or not, as the path says."""
    world = World(lab)
    haproxy = Haproxy(world)
    same(haproxy.ask("/login").status, 200)
    same(world.agent.stop(), 0)
    proxies.unanswered(world, haproxy)
    world.agent = world.start()
    # It is asked again as soon as it answers a health check.
    poll("it to be asked", lambda: haproxy.ask("/login").status == 429)


def test_agent_stalled(lab):
    """The agent takes connections and does not answer: the same, in time."""
    world = World(lab)
    proxies.stalled(world, Haproxy(world, timeout_ms=200))


def test_keys_are_data(lab):
    """Nothing that a client puts in its key is more than a key."""
    world = World(lab)
    proxies.keys_are_data(world, keyed(world), (400, 431, 503))


def test_wrong_questions(lab):
    """What could not be answered is not asked; what is wrong is refused."""
    world = World(lab)
    haproxy = keyed(world)
    for size in (256, 10000):
        same(haproxy.statuses("/", fields={"X-Customer": "x" * size}), [503])
    same(world.counter("http_4xx"), 0)
    haproxy = Haproxy(world, [("lua.ratelimit checkout", "lua.ratelimit %zz")])
    same(haproxy.statuses("/"), [503])
    same((world.counter("http_4xx"), world.origin.count()), (1, 0))


def test_any_byte(lab):
    """No byte of a key makes it go through unasked."""
    world = World(lab, limits={"checkout": 1, "login": 1})
    proxies.any_byte(keyed(world))


def test_restart(lab):
    """The agent restarts under load: nobody is refused."""
    world = World(lab, limits={"checkout": 1000000, "login": 1})
    proxies.restarts(world, Haproxy(world),
                     lambda answer: answer.status == 200)


if __name__ == "__main__":
    harness.run([test_decisions, test_origin, test_servers_dead,
                 test_agent_gone, test_agent_stalled, test_keys_are_data,
                 test_wrong_questions, test_any_byte, test_restart])
