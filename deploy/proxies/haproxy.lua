-- Asks a gateway of rl-agent for haproxy.cfg, which says how. The answer is in
-- txn.ratelimit: permitted, denied, refused (by a failure policy, or since what
-- was asked is wrong) or unanswered (there is no agent, or it is late); and
-- what the client may know in txn.ratelimit_left, _policy and _retry_after.

-- As a destination; 2.6 would confuse two Unix sockets, so have but one.
local gateway = "unix@/run/rl-agent/front.sock"
-- More than a check may take: the horizon of the tenant's policy. An answer that
-- is late is waited for four times, as 2.6 tries again and cannot be told not to.
local timeout_ms = 200

local fields = {
    ["ratelimit"] = "txn.ratelimit_left",
    ["ratelimit-policy"] = "txn.ratelimit_policy",
    ["retry-after"] = "txn.ratelimit_retry_after"
}

local function verdict(answer)
    if answer.status == 200 then
        return "permitted"
    end
    local outcome = answer.headers and answer.headers["ratelimitly-outcome"]
    if outcome then
        return outcome[0] == "denied" and "denied" or "refused"
    end
    -- 503 and 504 without that are HAProxy's own, or say that all is full.
    local wrong = answer.status >= 400 and answer.status < 500
    return wrong and "refused" or "unanswered"
end

-- HEAD, since nobody reads a body. The key goes in a header, which takes any
-- bytes; in the query it would be code.
core.register_action("ratelimit", {"http-req"}, function(txn, rule)
    local key = txn:get_var("txn.ratelimit_key")
    if not key or #key > 255 then
        txn:set_var("txn.ratelimit", "refused")
        return
    end
    local answer = core.httpclient():head{
        url = "http://127.0.0.1/check/" .. rule .. "/",
        dst = gateway,
        timeout = timeout_ms,
        headers = {["RateLimitly-Key"] = {key}}
    }
    txn:set_var("txn.ratelimit", verdict(answer))
    for name, variable in pairs(fields) do
        local values = answer.headers and answer.headers[name]
        if values then
            txn:set_var(variable, values[0])
        end
    end
end, 1)
