-- Messages reach clients by channels of theirs: which command, and how a channel is named (prefix, client).
local PUBLISH, INBOX = 'PUBLISH', '%sinbox:%.16s'
