# frozen_string_literal: true

# The driver of Ruby's threads: says what `fencelock` says. See ../README.md for the protocol.
require "fencelock"

Cancel = Class.new(Exception)
CLIENTS = {}
HOLDS = {}
WAITS = {}
SPEAKING = Mutex.new
$stdout.sync = true

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

# In one piece.
def say(event, tag, **fields)
  more = fields.map { |key, value| " #{key}=#{value}" }.join
  wall = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
  SPEAKING.synchronize { $stdout.write("#{now} #{wall} #{event} #{tag}#{more}\n") }
end

def failed(event, tag, error) = say(event, tag, kind: error.kind, why: error.message.tr(" ", "_"))

# How far a hold is trusted, by a clock that was read before.
def trust(hold)
  at = now
  { until: at + (hold.remaining * 1e9).to_i, valid: hold.valid? }
end

def seconds(text) = text.to_i / 1000.0

# The acquire of what a mode names.
def taken(client, name, mode, adopt, **options)
  case mode
  when nil then client.lock(name, **options).method(:acquire)
  when "shared" then client.rw_lock(name, **options).reader.method(:acquire)
  else
    count, of = mode.delete_prefix("permits:").split("/").map(&:to_i)
    semaphore = client.semaphore(name, of, lease: options[:lease])
    semaphore = semaphore.adopting if adopt
    ->(**wait) { semaphore.acquire(count, **wait) }
  end
end

def begun(client, name, options)
  owner = options["owner"]
  lease = options["lease"] && seconds(options["lease"])
  how = { owner: owner, reentrant: !owner.nil?, lease: lease }
  acquire = taken(CLIENTS[client], name, options["mode"], options.key?("adopt"), **how)
  case options.fetch("wait", "forever")
  when "try" then acquire.call(timeout: 0)
  when "forever" then acquire.call
  when "endless" then acquire.call(timeout: Float::INFINITY)
  else acquire.call(timeout: seconds(options["wait"]))
  end
end

# Not a block of `acquire`, which would keep the hold.
def loss(tag) = proc { |reason| say("lost", tag, reason: reason) }

# A cancel is heard nowhere else, however early it comes.
def acquire(tag)
  hold = Thread.handle_interrupt(Cancel => :immediate) { yield }
  HOLDS[tag] = hold
  abandoned = { true => "yes", false => "no", nil => "unknown" }.fetch(hold.previous_abandoned)
  say("granted", tag, lock: hold.name, token: hold.token, abandoned: abandoned, reentry: hold.reentry?, **trust(hold))
  hold.on_lost(&loss(tag))
rescue Cancel
  say("failed", tag, kind: "cancelled")
ensure
  WAITS.delete(tag)
end

def drop(tag)
  say("drop-asked", tag, **trust(HOLDS[tag]))
  HOLDS.delete(tag)
  say("dropped", tag)
  Thread.new { 100.times { GC.start || sleep(0.1) } }
end

def close(tag, drain)
  limit = drain == "endless" ? Float::INFINITY : drain && seconds(drain)
  say("closed", tag, all: CLIENTS[tag].close(drain: limit) ? "yes" : "no")
end

NAMES = { "empty" => "", "nul" => "a\0b", "long" => "x" * 513, "half" => "half \xED\xA0\xBD" }.freeze

def name(tag, client, which)
  CLIENTS[client].lock(NAMES.fetch(which))
  say("named", tag)
end

def release(tag)
  hold = HOLDS.delete(tag) or return
  say("release-asked", tag, **trust(hold))
  hold.release
  say("released", tag)
end

REFUSALS = {
  "open" => "refused", "release" => "unreleased", "downgrade" => "unconverted", "upgrade" => "unconverted"
}.freeze

def convert(tag, verb)
  hold = HOLDS.fetch(tag)
  say("downgrade-asked", tag, **trust(hold)) if verb == "downgrade"
  done = verb == "downgrade" ? hold.downgrade : hold.try_upgrade
  return say("unconverted", tag, kind: :contended) unless done

  say("converted", tag, token: hold.token, mode: hold.mode)
end

def resize(tag, client, name, permits)
  say("resize-asked", tag, lock: name, of: permits)
  used = CLIENTS[client].semaphore(name, permits.to_i).resize(permits.to_i)
  say("resized", tag, used: used ? "yes" : "no")
end

def obey(verb, tag, words)
  options = words.filter_map { |word| word.split("=", 2) if word.include?("=") }.to_h
  case verb
  when "open"
    CLIENTS[tag] = Fencelock.connect(words[0])
    say("opened", tag, id: CLIENTS[tag].id, knows: "modes,conversions,resize")
  when "acquire" then acquire(tag) { begun(words[0], words[1], options) }
  when "attach" then acquire(tag) { CLIENTS[words[0]].attach(words[1]) }
  when "cancel" then WAITS[tag]&.raise(Cancel)
  when "look" then HOLDS[tag]&.then { |hold| say("seen", tag, **trust(hold)) }
  when "ticket" then say("ticket", tag, text: HOLDS[tag].ticket)
  when "downgrade", "upgrade" then convert(tag, verb)
  when "release" then release(tag)
  when "drop" then drop(tag)
  when "resize" then resize(tag, *words)
  when "list" then say("listed", tag, count: CLIENTS[words[0]].list(limit: words[1].to_i).size)
  when "name" then name(tag, *words)
  when "close" then close(tag, options["drain"])
  end
rescue Fencelock::Error => e
  failed(REFUSALS.fetch(verb, "failed"), tag, e)
end

$stdin.each_line do |line|
  verb, tag, *words = line.split
  exit if verb == "leave"
  waits = %w[acquire attach].include?(verb)
  if waits
    given = words.drop(2).to_h { |word| word.split("=", 2) }
    say("asked", tag, client: words[0], lock: words[1], **given.transform_keys(&:to_sym))
  end
  # What a thread gives, it keeps: not a hold.
  thread = Thread.handle_interrupt(Cancel => :never) { Thread.new { obey(verb, tag, words) && nil } }
  WAITS[tag] = thread if waits && thread.alive?
end
exit!(0) # Whoever tells us what to do has gone.
