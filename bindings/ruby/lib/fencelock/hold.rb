# frozen_string_literal: true

module Fencelock
  # A held lock, renewed in the background until it is released. One that is collected as garbage
  # releases its lock.
  class Hold
    # The name of the lock.
    attr_reader :name
    # @private
    def initialize(native)
      @native = native
      @name = native.name
    end

    # The fencing token: greater than that of every earlier hold of this lock. Send it with every write,
    # and let the resource refuse a smaller one than it has seen. `downgrade` and `try_upgrade` change it.
    def token = @native.token

    # What the hold lets beside it now: :exclusive, :shared or :permits.
    def mode = Names::MODES.fetch(@native.mode)

    # The token, if the hold can be trusted at this moment; raises LostError when it has ended.
    def check = @native.check

    # Whether the hold can be trusted at this moment, by this machine's clock.
    def valid? = @native.is_valid

    # For how many seconds the hold can be trusted if it is not renewed; 0.0 when it has ended.
    def remaining = Spans.to_seconds(@native.remaining)

    # Whether the owner had the lock already when this hold was granted.
    def reentry? = @native.is_reentry

    # Whether the previous holder was lost instead of releasing; nil when nobody knows. If true, what the
    # lock protects may be half done.
    def previous_abandoned = Names::ABANDONED.fetch(@native.previous_abandoned)

    # Whether another client waits for the lock, as far as is known.
    def wanted? = @native.is_wanted

    # Calls the block once when the hold is lost, at once when it is already, with :ended, :not_renewed,
    # :gone, :broken or :closed. It runs on a thread of its own.
    def on_lost(&block)
      raise ArgumentError, "on_lost needs a block" unless block

      News.expect(News.of_loss(block)) { |descriptor, number| @native.lost_to_pipe(descriptor, number) }
      self
    end

    # Calls the block once when another client waits for the lock. A holder that can pause its work may then
    # release, and acquire again.
    def on_wanted(&block)
      raise ArgumentError, "on_wanted needs a block" unless block

      News.expect(News.of_wish(block)) { |descriptor, number| @native.wanted_to_pipe(descriptor, number) }
      self
    end

    # Sets the lease to so many seconds from now on; never shortens it.
    def extend_lease(seconds)
      span = Spans.to_native("the lease", seconds)
      Pending.uninterrupted { @native.extend_async(span) }
      self
    end

    # Reads from now on instead of writing, without letting go of the lock: other readers are let in, and no writer
    # comes between. Nothing, if the hold reads already. Raises ContendedError when the owner writes by another
    # hold, too; UnsupportedError on ZooKeeper for a hold of a plain lock; UnavailableError when the store did not
    # answer: the hold reads all the same.
    def downgrade
      Pending.uninterrupted { @native.downgrade_async }
      self
    end

    # Writes from now on instead of reading, if nobody else has the lock, past whoever waits for it; gives false
    # when others read, or the owner by another hold. It does not wait: two readers that waited for each other's end
    # would do so for ever. Raises UnsupportedError on ZooKeeper, and UnavailableError when the store did not answer:
    # the hold goes on reading.
    def try_upgrade
      Pending.uninterrupted { @native.try_upgrade_async }
      true
    rescue ContendedError
      false
    end

    # A short text with which another thread, process or language goes on with this hold, by
    # Client#attach. Only for an explicit owner, and not for a hold to read.
    def ticket = @native.ticket

    # Releases, and returns when the store, or the next holder of this program, has the lock. Raises
    # LostError when the hold had ended before, NotHeldError when it was released before, and
    # UnavailableError when the store did not answer: it goes on in the background. An interrupt waits for its
    # end, which comes within the request timeout.
    def release
      Pending.uninterrupted do
        @released = true
        @native.release_async
      end
      nil
    end

    # At the end of a block that failed with `failure`, or did not.
    # @private
    def leave(failure)
      release unless @released
    rescue UnavailableError
      # It was valid until the end, and nobody can do more than what goes on in the background.
    rescue Error
      # To raise would let a killed thread live.
      raise unless failure || Thread.current.status == "aborting"
    end

    def inspect = "#<#{self.class} #{name} token=#{token} #{valid? ? 'valid' : 'ended'}>"
  end
end
