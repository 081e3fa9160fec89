# frozen_string_literal: true

module Fencelock
  # Connects to the store of a URL (redis://host, zk://host, sqlite:file, memory:name), and gives a client
  # when it has answered. With a block, calls it with the client, and closes that at the end.
  #
  # Options, times in seconds: `lease` of holds without one of their own (30), `claim` (3),
  # `request_timeout` (3), `connect_timeout`, `label` beside the client's id wherever holders are listed,
  # `key_prefix` (Redis), `local_run_grants` (64), `local_run_time` (0.01), `max_waiters`.
  def self.connect(url, **options)
    spans = %i[lease claim request_timeout connect_timeout local_run_time]
    given = options.to_h do |name, value|
      next [name, Spans.to_native(name, value)] if spans.include?(name)
      next [name, Text.to_native(name, value)] if %i[label key_prefix].include?(name)
      next [name, value && Spans.count(name, value, 0, 1 << 32)] if %i[local_run_grants max_waiters].include?(name)

      [name, value]
    end
    native = NativeConnectOptions.new(**given)
    url = Text.to_native("the URL", url)
    client = nil
    Pending.await(-> { begin_connect(url, native) }, :client) { |fetched| client = Client.new(fetched) }
    return client unless block_given?

    begin
      yield client
    ensure
      client.close
    end
  end

  # A connection to a store, for all threads of the process: make one and keep it. In a forked child,
  # connect anew.
  class Client
    # @private
    def initialize(native)
      @native = native
      AtEnd.watch(self, native)
    end

    # The 16 hexadecimal digits under which the store knows this client.
    def id = @native.id

    # The store's name: memory, sqlite, redis, zookeeper.
    def store = @native.capabilities.store

    # What the store can and cannot do.
    def capabilities = @native.capabilities

    # The lock `name`; asks the store nothing.
    #
    # The owner is whoever calls, or with `reentrant: false` nobody, so that each acquire waits for all
    # others, or with `owner: "text"` whoever shows the same text, in any process or language. With a
    # `lease` in seconds a hold is not renewed and ends with it; with `max_hold` it is, for so long at most.
    def lock(name, owner: nil, reentrant: true, lease: nil, max_hold: nil)
      name = Text.to_native("the name of a lock", name)
      Lock.new(@native, name, owner_of(owner, reentrant), spans(lease, max_hold))
    end

    # The read-write lock `name`, whose write side is the lock of that name; asks the store nothing. The options
    # are those of `lock`. Whether the store has such locks, `capabilities.shared` says.
    def rw_lock(name, owner: nil, reentrant: true, lease: nil, max_hold: nil)
      name = Text.to_native("the name of a lock", name)
      RwLock.new(@native, name, owner_of(owner, reentrant), spans(lease, max_hold))
    end

    # The semaphore `name` with so many `permits`, 1 to 1,000,000; asks the store nothing. With a `lease` in
    # seconds what is taken is not renewed and comes back with its end; with `max_hold` it is renewed for so long
    # at most.
    def semaphore(name, permits, lease: nil, max_hold: nil)
      name = Text.to_native("the name of a semaphore", name)
      permits = Spans.count("the number of permits", permits, 1, 1 << 32)
      Semaphore.new(@native, name, permits, spans(lease, max_hold).values)
    end

    # Goes on with a hold by its ticket, from wherever that was made.
    def attach(ticket)
      ticket = Text.to_native("the ticket", ticket)
      Pending.await(-> { @native.begin_attach(ticket) }, :hold) { |fetched| return Hold.new(fetched) }
    end

    # The state of a lock, for people; nil when the store knows nothing of it.
    def inspect_lock(name)
      name = Text.to_native("the name of a lock", name)
      Pending.uninterrupted { @native.inspect_async(name) }
    end

    # The names of at most `limit` locks, 1 or more, that begin with `prefix`.
    def list(prefix = "", limit: 1000)
      prefix = Text.to_native("the prefix", prefix)
      limit = Spans.count("the limit", limit, 1, 1 << 32)
      Pending.uninterrupted { @native.list_async(prefix, limit) }
    end

    # Ends the holds on a lock that were seen under `token` (that of `inspect_lock`, or of a hold), whoever
    # has them, and none that came after it: so a break may be repeated. Gives how many were `ended`, or the
    # token under which somebody else holds it now, `changed_hands`. For operators: who held it is told, but
    # may be in the middle of a write.
    def break_lock(name, token)
      name = Text.to_native("the name of a lock", name)
      token = Spans.count("the token", token, 0, 1 << 64)
      Pending.uninterrupted { @native.break_lock_async(name, token) }
    end

    # Ends one hold of a lock or a semaphore: `hold` is its id, and `token` its token, as `inspect_lock` shows them.
    # The others stay. As break_lock otherwise; raises InvalidArgumentError for what is no hold's id.
    def break_hold(name, token, hold)
      name = Text.to_native("the name of a lock", name)
      token = Spans.count("the token", token, 0, 1 << 64)
      hold = Text.to_native("the id of a hold", hold)
      Pending.uninterrupted { @native.break_hold_async(name, token, hold) }
    end

    # The store's time.
    def ping = Pending.uninterrupted { @native.ping_async }

    # What was counted, in Prometheus' text format.
    def metrics = @native.metrics

    # Closes: waits end with ClosedError, holds are told that they are lost, and released at the store. Safe
    # at any time, and to repeat. With `drain`, takes no new owners first, and waits so many seconds (or
    # Float::INFINITY) for what is held. Gives whether all was released: nothing was held or waited for when it
    # closed, and the store has confirmed it; false is no failure to close. A negative drain raises
    # InvalidArgumentError, and the client stays open.
    def close(drain: nil)
      return Pending.uninterrupted { @native.shut_down_async } unless drain

      span = Spans.patience("drain", drain) || Spans.to_native("drain", Spans::LONGEST)
      @native.drain_async(span)
    end

    # Whether the client was closed.
    def closed? = @native.is_shut_down

    def inspect = "#<#{self.class} #{id} #{store}>"

    private

    def owner_of(owner, reentrant)
      raise InvalidArgumentError, "an explicit owner is re-entrant: leave one of the two out" if owner && !reentrant
      return NativeOwner::EXPLICIT.new(id: Text.to_native("the owner", owner)) if owner

      :nobody unless reentrant
    end

    def spans(lease, max_hold)
      { lease: Spans.to_native("the lease", lease), max_hold: Spans.to_native("max_hold", max_hold) }
    end
  end
end
