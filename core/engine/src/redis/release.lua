
-- Release: everything else.
local s, refused = load(1, false, KEYS[5])
if not s then return { err = refused } end
tick(s)
local released = finish(s, arg[1], arg[2] + 0, arg[3] + 0)
settle(s, nil, 0)
save(s, arg[4])
return { now, released }
