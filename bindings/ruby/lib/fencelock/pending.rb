# frozen_string_literal: true

module Fencelock
  # What Thread#raise, Thread#kill, Timeout and Ctrl-C may not come in between: else a place in the queue, or a
  # hold, would be known to nobody.
  module Pending
    module_function

    def uninterrupted(&block) = Thread.handle_interrupt(Object => :never, &block)

    # Begins something, waits for its end, and gives what `fetch` names to the block, which keeps it. What was not
    # fetched is given back.
    #
    # A thread of its own waits: an interrupt that came while the generated code is called back would be
    # swallowed there, and the wait with it. To wait for that thread can be interrupted anywhere.
    def await(start, fetch)
      pending = waiter = nil
      uninterrupted do
        pending = start.call
        waiter = apart { pending.ended }
      end
      waiter.value
      uninterrupted { yield pending.public_send(fetch) }
    ensure
      uninterrupted { pending.cancel } if pending
    end

    # Runs the block on a thread that nobody interrupts.
    def apart(&block)
      uninterrupted do
        Thread.new do
          Thread.current.report_on_exception = false
          block.call
        end
      end
    end
  end
  private_constant :Pending
end
