
-- Release: everything else.
local s, refused = load(KEYS[1], KEYS[2], false)
if not s then return { err = refused } end
tick(s)
local released = finish(s, arg[1], arg[2] + 0, arg[3] + 0)
settle(s, nil, 0)
save(s)
return { now, released }
