-- As plain.lua, by a channel of each lock, in its slot (prefix, client, name).
local PUBLISH, INBOX = 'SPUBLISH', '%sinbox:%.16s:{%s}'
