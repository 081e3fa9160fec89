# frozen_string_literal: true

module Fencelock
  # What Thread#raise, Thread#kill, Timeout and Ctrl-C may not come in between: else a place in the queue, or a
  # hold, would be known to nobody.
  module Pending
    module_function

    def uninterrupted(&block) = Thread.handle_interrupt(Object => :never, &block)

    # What an `ensure` must do: an interrupt may come before it is put off, and then the block has yet to be called.
    def surely(&block)
      done = false
      uninterrupted do
        done = true
        yield
      end
    ensure
      surely(&block) unless done
    end

    # Begins something, waits for its end, and gives what `fetch` names to the block, which keeps it. What was not
    # fetched is given back. The wait can be interrupted, unless the caller put that off.
    def await(start, fetch)
      pending = nil
      uninterrupted { pending = start.call }
      pending.ended
      uninterrupted { yield pending.public_send(fetch) }
    ensure
      surely { pending.cancel } if pending
    end
  end
  private_constant :Pending

  # Where the native library writes when something that is awaited goes on.
  WAKE = FFI::Function.new(:void, %i[uint64 int8], FFI::Pointer.new(wake_by_pipe))
  private_constant :WAKE

  class << self
    remove_method :uniffi_rust_call_async

    # In place of what is generated, whose native library calls Ruby's code to go on. Nobody runs that code any
    # more when Ruby ends its threads, and a thread that releases its lock then would keep the process for ever;
    # an interrupt that comes while it runs is swallowed; and it takes a mutex, which a signal's handler may not.
    def uniffi_rust_call_async(future, poll, cancel, complete, free, lift, errors)
      polled = false
      reader, writer = IO.pipe
      loop do
        Pending.uninterrupted do
          UniFFILib.public_send(poll, future, WAKE, writer.fileno)
          polled = true
        end
        reader.wait_readable
        code = Pending.uninterrupted do
          polled = false
          reader.getbyte
        end
        break if code == UNIFFI_RUST_FUTURE_POLL_READY
      end
      lift.call(errors ? rust_call_with_error(errors, complete, future) : rust_call(complete, future))
    ensure
      Pending.surely do
        if polled
          UniFFILib.public_send(cancel, future)
          # Each poll writes one byte. Not before it is there may another file have the descriptor.
          reader.getbyte
        end
        reader&.close
        writer&.close
        UniFFILib.public_send(free, future)
      end
    end
  end
end
