/* Dice that are hashes of who is asking; see network.h. */
#include "tests/sim/network.h"

/* What a die is cast for. */
enum dice {
	DICE_REFUSED,
	DICE_REQUEST_LOST,
	DICE_ANSWER_LOST,
	DICE_DOUBLED,
	DICE_CORRUPTED,
	DICE_STRANGER,
	DICE_DENIED,
	DICE_DELAY,
};

static uint64_t
cast(const struct scenario *sc, uint32_t op, uint32_t server, uint32_t copy,
    uint32_t twin, enum dice what)
{
	uint64_t h = sc->weather;

	h = scenario_mix(h ^ sc->op[op].key);
	h = scenario_mix(h + sc->server[server].id);
	return scenario_mix(h ^ ((uint64_t)copy << 16 | twin << 8 | what));
}

static bool
chance(const struct scenario *sc, uint32_t op, uint32_t server, uint32_t copy,
    uint32_t twin, enum dice what, uint32_t thousandths)
{
	return cast(sc, op, server, copy, twin, what) % 1000 < thousandths;
}

bool
network_refuses(const struct scenario *sc, uint32_t op, uint32_t server,
    uint32_t copy, bool first_transmission)
{
	if (first_transmission && sc->op[op].refused_first)
		return true;
	return chance(
	    sc, op, server, copy, 0, DICE_REFUSED, sc->op[op].refused);
}

static bool
is_up(const struct scenario_server *s, int64_t at)
{
	for (uint32_t i = 0; i < s->outages; i++) {
		if (at >= s->outage[i].from && at < s->outage[i].until)
			return false;
	}
	return true;
}

static int64_t
delay(const struct scenario *sc, uint32_t op, uint32_t server, uint32_t copy,
    uint32_t twin)
{
	const struct scenario_server *s = &sc->server[server];
	int64_t us = s->delay_us;

	if (s->jitter_us > 0)
		us += (int64_t)(cast(sc, op, server, copy, twin, DICE_DELAY) %
				((uint64_t)s->jitter_us + 1));
	us -= us % sc->tick_us;
	return us > 0 ? us : 1;
}

static enum network_kind
kind(const struct scenario *sc, uint32_t op, uint32_t server, uint32_t copy,
    uint32_t twin)
{
	if (chance(sc, op, server, copy, twin, DICE_CORRUPTED,
		sc->server[server].corrupted))
		return chance(sc, op, server, copy, twin, DICE_STRANGER, 500)
			   ? NETWORK_STRANGER
			   : NETWORK_GARBAGE;
	return chance(sc, op, server, copy, twin, DICE_DENIED, 500)
		   ? NETWORK_DENIED
		   : NETWORK_ALLOWED;
}

size_t
network_carry(const struct scenario *sc, uint32_t op, uint32_t server,
    uint32_t copy, int64_t sent_at,
    struct network_datagram out[NETWORK_ANSWERS_MAX])
{
	const struct scenario_server *s = &sc->server[server];
	const int64_t back = delay(sc, op, server, copy, 0);
	uint32_t twins = 1;
	size_t count = 0;

	if ((sc->op[op].deaf >> server & 1) != 0 ||
	    chance(sc, op, server, copy, 0, DICE_REQUEST_LOST, s->lost) ||
	    !is_up(s, sent_at + back / 2))
		return 0;
	if (chance(sc, op, server, copy, 0, DICE_DOUBLED, s->doubled))
		twins++;
	for (uint32_t twin = 0; twin < twins; twin++) {
		if (chance(
			sc, op, server, copy, twin, DICE_ANSWER_LOST, s->lost))
			continue;
		out[count++] = (struct network_datagram){
		    .at = sent_at + delay(sc, op, server, copy, twin),
		    .op = op,
		    .server = server,
		    .copy = copy,
		    .twin = twin,
		    .kind = kind(sc, op, server, copy, twin),
		};
	}
	return count;
}

static int
compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

int
network_order(
    const struct network_datagram *a, const struct network_datagram *b)
{
	int order = compare(a->at, b->at);

	if (order == 0)
		order = compare(a->op, b->op);
	if (order == 0)
		order = compare(a->server, b->server);
	if (order == 0)
		order = compare(a->copy, b->copy);
	if (order == 0)
		order = compare(a->twin, b->twin);
	return order;
}
