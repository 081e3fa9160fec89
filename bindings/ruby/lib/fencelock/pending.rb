# frozen_string_literal: true

module Fencelock
  # What Thread#raise, Thread#kill, Timeout and Ctrl-C may not come in between: else a place in the queue, or a
  # hold, would be known to nobody.
  module Pending
    module_function

    def uninterrupted(&block) = Thread.handle_interrupt(Object => :never, &block)

    # Begins something, waits for its end, and gives what `fetch` names to the block, which keeps it. What was not
    # fetched is given back.
    def await(start, fetch)
      pending = nil
      uninterrupted { pending = start.call }
      pending.ended
      uninterrupted { yield pending.public_send(fetch) }
    ensure
      uninterrupted { pending.cancel } if pending
    end
  end
  private_constant :Pending
end
