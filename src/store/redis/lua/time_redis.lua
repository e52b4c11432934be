local function store_time() local x = redis.call('TIME') return x[1] * 1000000 + x[2] end
