#!/usr/bin/env python3
"""
Traefik and Envoy, which are not run here: their files in deploy/proxies are
read, and a gateway is sent what they would send for them, as their
documentation has it, by clients who would like to be counted as somebody else.
"""

import http.client
import socket

import harness
import proxies
from harness import Skip, check, same
from proxies import World, limited

try:
    import yaml
except ImportError:
    yaml = None

# What clients ask the proxy for.
TARGETS = ("/", "/cart", "/cart?key=other&tokens=9", "/%2e%2e/x?", "//?&&",
           "/metrics", "/a/../../check/login", "/?" + "x" * 4000)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=harness.PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def read(name):
    if yaml is None:
        raise Skip("no python3-yaml here")
    return yaml.safe_load(proxies.read(name))


def ask(connection, method, path, fields):
    """As it stands: nothing is added but what is needed to be HTTP."""
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in fields.items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    return proxies.Answer(response.status, response.getheaders(),
                          response.read())


class Traefik:
    """forwardAuth: GET of the address with X-Forwarded-... of the request;
    of its own headers only those that are listed."""

    def __init__(self, world, document, name):
        self.world = world
        auth = document["http"]["middlewares"][name]["forwardAuth"]
        scheme, _, rest = auth["address"].partition("://")
        where, _, path = rest.partition("/")
        same((scheme, where), ("http", "127.0.0.1:8429"))
        check(not auth["trustForwardHeader"])
        self.path, self.listed = "/" + path, auth["authRequestHeaders"]

    def ask(self, client, method, target, fields):
        sent = {name: value for name, value in fields.items()
                if name in self.listed}
        sent.update({"X-Forwarded-For": client, "X-Forwarded-Proto": "http",
                     "X-Forwarded-Method": method, "X-Forwarded-Uri": target,
                     "X-Forwarded-Host": "shop.example"})
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.world.port, timeout=harness.PATIENCE)
        answer = ask(connection, "GET", self.path, sent)
        connection.close()
        return answer


class Envoy:
    """ext_authz: the request's method, its path behind a prefix, and of its
    headers those that are listed, after the filters before have set them."""

    def __init__(self, world, document):
        resources = document["static_resources"]
        clusters = {c["name"]: c for c in resources["clusters"]}
        manager = resources["listeners"][0]["filter_chains"][0]["filters"][0][
            "typed_config"]
        mutation, authz, router = (f["typed_config"] for f in
                                   manager["http_filters"])
        check(router["@type"].endswith(".Router"))
        self.listed = [p["exact"] for p in
                       authz["allowed_headers"]["patterns"]]
        change = mutation["mutations"]["request_mutations"][0]["append"]
        same(change["append_action"], "OVERWRITE_IF_EXISTS_OR_ADD")
        same(change["header"]["value"],
             "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%")
        self.key = change["header"]["key"]
        service = authz["http_service"]
        self.prefix = service["path_prefix"]
        cluster = clusters[service["server_uri"]["cluster"]]
        endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][
            0]["endpoint"]
        same(endpoint["address"]["pipe"]["path"],
             proxies.listen("front").partition(":")[2])
        self.world = world
        self.told = [{p["exact"] for p in service["authorization_response"][
            name]["patterns"]} for name in
            ("allowed_client_headers", "allowed_client_headers_on_success")]

    def ask(self, client, method, target, fields):
        fields = {name.lower(): value for name, value in fields.items()}
        fields[self.key] = client
        sent = {name: value for name, value in fields.items()
                if name in self.listed or name == "authorization"}
        sent["content-length"] = "0"
        connection = UnixConnection(self.world.socket("front"))
        answer = ask(connection, method, self.prefix + target, sent)
        connection.close()
        return answer


FORGED = {"X-Forwarded-For": "203.0.113.9", "RateLimitly-Key": "203.0.113.9",
          "Authorization": "Basic eDp5", "Cookie": "key=a&tokens=9"}


def judged(world, proxy):
    """Each client has the two that the rule allows, whatever he asks for."""
    number = 0
    for target in TARGETS:
        for method in ("GET", "POST", "HEAD", "OPTIONS", "DELETE", "PURGE"):
            number += 1
            client = "192.0.2.%d" % number
            statuses = [proxy.ask(client, method, target, FORGED).status
                        for _ in range(3)]
            same(statuses, [200, 200, 429], method, target)
    # None of them was he that they said.
    same([proxy.ask("203.0.113.9", "GET", "/", {}).status for _ in range(3)],
         [200, 200, 429])
    limited(proxy.ask("203.0.113.9", "GET", "/", {}), "checkout", 2)


def test_traefik(lab):
    """forwardAuth of Traefik, with its file."""
    document = read("traefik.yaml")
    world = World(lab, tcp=True)
    same(proxies.listen("traefik"), "127.0.0.1:8429")
    judged(world, Traefik(world, document, "ratelimit-checkout"))
    login = Traefik(world, document, "ratelimit-login")
    same([login.ask("192.0.2.1", "GET", "/", {}).status for _ in range(2)],
         [200, 429])
    # What is referred to is there, and all of it is used.
    http = document["http"]
    used = [name for router in http["routers"].values()
            for name in router["middlewares"]]
    same(sorted(used), sorted(http["middlewares"]))
    same({router["service"] for router in http["routers"].values()},
         set(http["services"]))


def test_envoy(lab):
    """ext_authz of Envoy, with its file."""
    document = read("envoy.yaml")
    world = World(lab)
    envoy = Envoy(world, document)
    judged(world, envoy)
    for told in envoy.told:
        same(told, {"ratelimit", "ratelimit-policy", "retry-after"})


def test_dead_servers(lab):
    """503 of a rule that fails closed, 200 of one that fails open."""
    document = read("traefik.yaml")
    world = World(lab, policy=harness.SHORT, tcp=True)
    world.deaf()
    same([Traefik(world, document, "ratelimit-" + name).ask(
        "192.0.2.1", "GET", "/", {}).status for name in ("checkout", "login")],
        [200, 503])


if __name__ == "__main__":
    harness.run([test_traefik, test_envoy, test_dead_servers])
