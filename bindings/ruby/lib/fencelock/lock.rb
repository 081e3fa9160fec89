# frozen_string_literal: true

module Fencelock
  # A lock; from Client#lock. One object serves any number of threads.
  #
  # Its owner is the thread, to be exact the fiber, which enters again without waiting, as with a Monitor;
  # see Client#lock for others. Waits let other threads run; one that is interrupted (Timeout, Thread#raise,
  # Ctrl-C) leaves the queue.
  class Lock
    # The lock's name.
    attr_reader :name

    # @private
    def initialize(client, name, owner, options, &side)
      @client = client
      @name = name
      @owner = owner
      @options = options
      @side = side || ->(given) { client.lock(name, given) }
      native
    end

    # Acquires, calls the block with the hold, and releases. Gives what the block gives.
    #
    # Raises LostError when the lock was lost before the block ended: what it did may have overlapped with
    # another holder. If the block raised, that comes first.
    def synchronize(timeout: nil, &block)
      AtEnd.busy(@client) { enter(timeout, &block) }
    end

    # Acquires, waiting as long as it takes (also with Float::INFINITY), or for `timeout` seconds, and gives the
    # hold. Raises TimedOutError, InvalidArgumentError for a negative timeout, and UnavailableError when the store
    # could not be asked within the timeout; without one, an outage is waited out.
    def acquire(timeout: nil)
      fetch(timeout) { |hold| return hold }
    end

    # Acquires without waiting for others: the hold, or nil when somebody has the lock, or waits for it.
    def try_acquire
      acquire(timeout: 0)
    rescue ContendedError
      nil
    end

    # As Mutex#lock.
    def lock
      fetch(nil) { |hold| Entered.push(self, hold) }
      self
    end

    # As Mutex#try_lock.
    def try_lock
      fetch(0) { |hold| Entered.push(self, hold) }
      true
    rescue ContendedError
      false
    end

    # As Mutex#unlock: releases what this thread locked last through this object. Raises NotHeldError if
    # there is nothing, and LostError when it was lost meanwhile.
    def unlock
      Pending.uninterrupted do
        hold = Entered.pop(self)
        raise NotHeldError, "this thread has not locked #{name.inspect} through this object" unless hold
        hold.release
      end
      self
    end

    # ConditionVariable#wait calls this, and would otherwise sleep with the lock held.
    # @private
    def sleep(*)
      raise UnsupportedError, "a ConditionVariable waits with a Mutex: release #{name.inspect}, wait, and acquire it again"
    end

    # As Mutex#owned?, but false also when the lock was lost.
    def owned? = current&.valid? || false

    # The hold of the last `lock` of this thread through this object, or nil.
    def current = Entered.last(self)

    # Whether anybody, on any machine, holds the lock, by the store's word. Good for display, never for a
    # decision: it may have changed when the answer arrives.
    def locked? = Pending.uninterrupted { native.is_locked_async }

    def inspect = "#<#{self.class} #{name}>"

    private

    def enter(timeout)
      hold = failure = nil
      fetch(timeout) { |fetched| hold = fetched }
      yield hold
    rescue Exception => e # rubocop:disable Lint/RescueException
      failure = e
      raise
    ensure
      Pending.surely { hold.leave(failure) } if hold
    end

    # Waits, and gives the hold to the block, which keeps it.
    def fetch(timeout)
      span = Spans.patience("the timeout", timeout)
      AtEnd.busy(@client) do
        Pending.await(-> { native.begin_acquire(span) }, :hold) { |fetched| yield Hold.new(fetched) }
      end
    end

    def native
      owner = @owner == :nobody ? nil : @owner || Owners.current
      @side.call(NativeLockOptions.new(owner: owner, **@options))
    end
  end

  # Who calls, by a number.
  module Owners
    # The thread or fiber; Thread#[] is the fiber's. No object has the number of an earlier one.
    def self.current
      Thread.current[:fencelock_owner] ||= NativeOwner::LOCAL.new(number: Object.new.object_id)
    end
  end
  private_constant :Owners
end
