#!/usr/bin/env python3
"""
nginx in front of a gateway, with the very file of deploy/proxies: what clients
get when a check is allowed, denied, failed or not answered, that no key of a
client can become more than a key, and that a restart of the agent loses none.
"""

import grp
import json
import os
import pwd
import re

import harness
import manager
import proxies
from harness import check, same
from proxies import World, field, limited

MAIN = """
%(user)s
daemon off;
worker_processes 1;
pid %(folder)s/nginx.pid;
error_log stderr info;
events { worker_connections 512; }
http {
    access_log %(folder)s/access.log;
    client_body_temp_path %(folder)s/body;
    proxy_temp_path %(folder)s/proxy;
    fastcgi_temp_path %(folder)s/fastcgi;
    uwsgi_temp_path %(folder)s/uwsgi;
    scgi_temp_path %(folder)s/scgi;
    include %(site)s;
}
"""


class Nginx(proxies.Proxy):
    """A master and a worker, both of the user that runs the test."""

    def __init__(self, world, pairs=(), patient=True, text=None):
        self.world, self.pairs = world, list(pairs)
        self.text = text or proxies.read("nginx.conf")
        if patient:
            self.pairs.append(("proxy_read_timeout 500ms",
                               "proxy_read_timeout " + proxies.PATIENT))
        super().__init__(world.lab, "nginx", self.configure)

    def configure(self, port):
        program = proxies.program("nginx")
        folder = os.path.join(self.world.lab.path, "nginx-%d" % port)
        os.mkdir(folder)
        site = os.path.join(folder, "site.conf")
        with open(site, "w", encoding="utf-8") as f:
            f.write(proxies.replaced(self.text, [
                ("listen 80;", "listen 127.0.0.1:%d;" % port),
                ("127.0.0.1:8080",
                 "127.0.0.1:%d" % self.world.origin.port),
                ("/run/rl-agent/nginx.sock", self.world.socket("nginx"))] +
                self.pairs))
        main = os.path.join(folder, "nginx.conf")
        user = "user %s %s;" % (pwd.getpwuid(os.geteuid()).pw_name,
                                grp.getgrgid(os.getegid()).gr_name)
        with open(main, "w", encoding="utf-8") as f:
            f.write(MAIN % {"folder": folder, "site": site,
                            "user": user if os.geteuid() == 0 else ""})
        return [program, "-p", folder, "-e", "stderr", "-c", main]


def test_decisions(lab):
    """200 and 429 with what the client should know, whatever it sends."""
    world = World(lab)
    nginx = Nginx(world)
    proxies.decisions(world, nginx)
    # Nobody from outside asks the gateway, or falls through it.
    same(nginx.statuses("/_ratelimit/open/checkout", "/_ratelimit/x",
                        client=4), [404, 404])


def test_origin(lab):
    """What the origin answers is left alone, errors too."""
    world = World(lab, limits={"checkout": 100, "login": 1})
    proxies.origin_is_left_alone(world, Nginx(world))


def test_own_refusals(lab):
    """What nginx refuses by itself is no 429."""
    world = World(lab)
    nginx = Nginx(world, [("location /login {",
                           "location /login {\n        deny 127.0.0.5;")])
    same(nginx.statuses("/login", client=5), [403])
    same(nginx.statuses("/login", client=6), [200])


def test_other_locations(lab):
    """A regular expression that takes any path does not take the question."""
    world = World(lab)
    any_path = ("location / {", "location ~ . {")
    nginx = Nginx(world, [any_path])
    same(nginx.statuses("/", "/", "/"), [200, 200, 429])
    # Nor one that the file does not know, which would be a yes of the origin.
    nginx = Nginx(world, [any_path, ("/_ratelimit/open/", "/_ratelimit/o/")])
    same(nginx.statuses("/"), [503])
    same(world.origin.count(), 2)


def manual(marker):
    """The example of the manual that holds it, as the manual shows it."""
    with open(os.path.join(proxies.TOP, "man", "rl-agent-gateway.7"),
              encoding="utf-8") as f:
        found, = [text for text in re.findall(
            r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed$", f.read(), re.M | re.S)
            if marker in text]
    check("\\" not in found, "it is no plain text any more", found)
    return found


def test_manual(lab):
    """What the manual shows, gateway and file, does what it says."""
    gateway = json.loads("{%s}" % manual("deny_status"))["gateway"]
    text = manual("auth_request ")
    world = World(lab)
    shown = json.loads(proxies.read("rl-agent.json"))["gateway"]["nginx"]
    for name, value in gateway["nginx"].items():
        same(shown[name], value, name)
    nginx = Nginx(world, text=text)
    same(nginx.statuses("/", "/login"), [200, 200])
    limited(nginx.ask("/"), "checkout", 2)
    # And it is the file, but for one location and what explains it.
    lines = [line.strip() for line in proxies.read("nginx.conf").split("\n")]
    for line in text.split("\n"):
        line = line.strip().replace("127.0.0.1:8080", "origin")
        check(line in lines, line)
        del lines[:lines.index(line)]


def test_servers_dead(lab):
    """No server answers: the policy of the rule decides, over HTTP, too."""
    world = World(lab, policy=harness.SHORT)
    proxies.servers_dead(world, Nginx(world))


def test_agent_gone(lab):
    """No agent: requests go through, or not, as the location says."""
    world = World(lab)
    nginx = Nginx(world)
    same(nginx.ask("/login").status, 200)
    same(world.agent.stop(), 0)
    proxies.unanswered(world, nginx)
    world.agent = world.start()
    limited(nginx.ask("/login"), "login", 1)


def test_agent_stalled(lab):
    """The agent takes connections and does not answer: the same, in time."""
    world = World(lab)
    proxies.stalled(world, Nginx(world, patient=False))


def test_misconfigured(lab):
    """A rule that is not there, or not offered, is no way around."""
    world = World(lab)
    nginx = Nginx(world, [("open/checkout", "open/no-such")])
    same(nginx.statuses("/", "/login"), [403, 200])
    world.document["gateway"]["nginx"]["rules"] = ["checkout"]
    lab.config(world.document, "gateways.json")
    world.agent.ctl("reload")
    same(nginx.statuses("/", "/login"), [403, 403])
    world.document["gateway"]["nginx"]["rules"] = ["*"]
    lab.config(world.document, "gateways.json")
    world.agent.ctl("reload")
    same(nginx.statuses("/", "/login"), [503, 429])
    # Neither "open" nor "closed".
    nginx = Nginx(world, [("/_ratelimit/open/", "/_ratelimit/opne/")])
    same(nginx.statuses("/"), [503])
    same(world.origin.count(), 1)


KEYED = ("set $ratelimit_key $remote_addr;\n        "
         "auth_request /_ratelimit/open/checkout")


def keyed(world, source):
    """The key is what the client sends."""
    return Nginx(world, [(KEYED, KEYED.replace("$remote_addr", source))])


def test_keys_are_data(lab):
    """Nothing that a client puts in its key is more than a key."""
    world = World(lab)
    proxies.keys_are_data(world, keyed(world, "$http_x_customer"), (400, 503))


def test_keys_in_a_query(lab):
    """Why the file has the key in a header: in the query it is code."""
    world = World(lab)
    nginx = Nginx(world, [
        (KEYED, KEYED.replace("$remote_addr", "$http_x_customer")),
        ("$rl_rule/;", "$rl_rule?key=$ratelimit_key;")])
    attack = {"X-Customer": "victim&tokens=2"}
    same(nginx.statuses("/", fields=attack), [200])
    same(nginx.statuses("/", fields={"X-Customer": "victim"}), [429])


def test_any_byte(lab):
    """No byte of a key makes the gateway hang up, which would let it pass."""
    world = World(lab, limits={"checkout": 1, "login": 1})
    nginx = keyed(world, "$http_x_customer")
    proxies.any_byte(nginx)
    check("upstream prematurely" not in nginx.process.err(),
          nginx.process.err())


def test_decoded_keys(lab):
    """Why the file warns of $uri: it may hold a line of its own."""
    world = World(lab)
    nginx = keyed(world, "$uri")
    before = world.origin.count()
    answer = nginx.ask("/a%0d%0aRateLimitly-Key:%20b")
    same((answer.status, world.origin.count()), (503, before))


def test_connections_are_kept(lab):
    """One connection to the agent serves one request after the other."""
    world = World(lab, limits={"checkout": 5, "login": 1})
    nginx = Nginx(world)
    before = world.counter("http_connections")
    same([nginx.ask("/").status for _ in range(20)], [200] * 5 + [429] * 15)
    same(world.counter("http_connections") - before, 1)


def decided(answer):
    """Let through by a server, and not for want of an answer."""
    return answer.status == 200 and field(answer, "RateLimit")


def test_restart(lab):
    """The agent restarts under load, its socket is held: none is lost."""
    m = manager.Manager(lab)
    m.listen("gateway.nginx", os.path.join(lab.path, "nginx.sock"))
    world = World(lab, limits={"checkout": 1000000, "login": 1}, manager=m)
    proxies.restarts(world, Nginx(world), decided)


def test_restart_alone(lab):
    """Without a socket that is held none is refused, but some are let pass."""
    world = World(lab, limits={"checkout": 1000000, "login": 1})
    proxies.restarts(world, Nginx(world), lambda answer: answer.status == 200)


if __name__ == "__main__":
    harness.run([test_decisions, test_origin, test_own_refusals,
                 test_other_locations, test_manual,
                 test_servers_dead, test_agent_gone, test_agent_stalled,
                 test_misconfigured, test_keys_are_data, test_keys_in_a_query,
                 test_any_byte, test_decoded_keys, test_connections_are_kept,
                 test_restart, test_restart_alone])
