# frozen_string_literal: true

module Fencelock
  # A semaphore: so many permits, of which each acquire takes one or several until its hold is released or lost;
  # from Client#semaphore. One object serves any number of threads.
  #
  # Who waits is served in turn: a small request never passes a larger one. Permits have no owner: a thread that
  # acquires again takes more of them, and may wait for its own. Those of a program that dies are free again when
  # their lease is over. Their tokens name the grants, and are no fence: several are valid at a time.
  class Semaphore
    # The semaphore's name.
    attr_reader :name
    # How many permits it has, as this object was told.
    attr_reader :permits

    # @private
    def initialize(client, name, permits, options, adopting: false)
      @client = client
      @name = name
      @permits = permits
      @options = options
      @adopting = adopting
      native
    end

    # The same semaphore, following the number of those who hold or wait where that is not `permits`: for who cannot
    # know of a resize. Its own number counts when nobody does, and is the most that one acquire takes; more than
    # there are raises InvalidArgumentError then, as after a resize.
    def adopting = Semaphore.new(@client, name, permits, @options, adopting: true)

    # Gives the semaphore another number of permits until nobody holds or waits, and true; false when nobody does,
    # and whoever comes next says how many there are. Of more, whoever fits enters at once. Of fewer, nobody loses
    # one, and nobody enters until enough have come back; who waits for more than there are raises
    # InvalidArgumentError. Everybody who comes later must say the new number, or be `adopting`.
    def resize(permits)
      permits = Spans.count("the number of permits", permits, 0, 1 << 32)
      Pending.uninterrupted { native.resize_async(permits) }
    end

    # Takes `count` permits together, calls the block with the hold, and gives them back; as Lock#synchronize
    # otherwise.
    #
    # Raises InvalidArgumentError unless the count is 1 to `permits`, and MisconfiguredError while others hold or
    # wait who named another number of permits, or while the name is a lock's.
    def with_permit(count = 1, timeout: nil, &block) = taking(count).synchronize(timeout: timeout, &block)

    # Takes `count` permits together and gives the hold, which gives them back together; as Lock#acquire otherwise.
    def acquire(count = 1, timeout: nil) = taking(count).acquire(timeout: timeout)

    # Takes `count` permits if so many are free and nobody waits: the hold, or nil.
    def try_acquire(count = 1) = taking(count).try_acquire

    # `permits`, or the number that it follows, less what the store says is taken. Good for display, never for a
    # decision: it may have changed when the answer arrives.
    def available_permits = Pending.uninterrupted { native.available_permits_async }

    def inspect = "#<#{self.class} #{name} of #{permits}>"

    private

    def taking(count)
      count = Spans.count("the number of permits", count, 0, 1 << 32)
      Lock.new(@client, name, :nobody, {}) { native.taking(count) }
    end

    def native
      semaphore = @client.semaphore(name, permits, *@options)
      @adopting ? semaphore.adopting : semaphore
    end
  end
end
