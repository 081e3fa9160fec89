# frozen_string_literal: true

module Fencelock
  # What holds tell unasked. The native library writes it to a pipe, which one thread reads: code of Ruby's that
  # the library called by itself would not be run in a forked child, nor while Ruby ends.
  module News
    @mutex = Mutex.new

    class << self
      # Not blocks of the hold's own, which would keep one that is forgotten.
      def of_loss(block) = ->(what) { block.call(Names::LOSSES.fetch(what - 1)) }
      def of_wish(block) = ->(_) { block.call }

      # Gives the block a descriptor and a number for the native library to write, and calls `told` with what
      # has happened, once, on a thread of its own.
      def expect(told)
        number = told.object_id
        descriptor = writer.fileno
        @expected[number] = told
        yield descriptor, number
      rescue Exception # rubocop:disable Lint/RescueException
        @expected&.delete(number)
        raise
      end

      private

      def writer
        @mutex.synchronize { start unless started? } unless started?
        @writer
      end

      # A forked child has neither the thread nor its parent's news.
      def started? = @process == Process.pid && @thread.alive?

      def start
        unless @process == Process.pid
          @reader, @writer = IO.pipe
          @expected = {}
          @process = Process.pid
        end
        @thread = Thread.new { serve }
      end

      def serve
        while (record = @reader.read(16))
          number, what = record.unpack("Q<2")
          told = @expected.delete(number)
          # Given to the thread: the variables are the next record's before it may have begun.
          Thread.new(told, what) { |its, news| its.call(news) } if told && what.positive?
        end
      end
    end
  end
  private_constant :News
end
