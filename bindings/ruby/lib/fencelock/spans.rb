# frozen_string_literal: true

module Fencelock
  # The generated code has times of the clock where spans of time are meant.
  module Spans
    module_function

    # Beyond every program's end, and far from what the generated code cannot say.
    LONGEST = 1_000 * 365 * 86_400

    # Seconds, or nil, as the generated code wants them.
    def to_native(name, seconds)
      return if seconds.nil?
      unless seconds.is_a?(Numeric) && seconds.real? && seconds >= 0 && seconds <= LONGEST
        raise FencelockError::InvalidArgument, "#{name} is a number of seconds from 0 on, not #{seconds.inspect}"
      end
      Time.at(seconds).utc
    end

    # How long to wait: Float::INFINITY, and what is beyond a thousand years, is without end, as nil.
    def patience(name, seconds)
      endless = seconds.is_a?(Numeric) && seconds.real? && seconds > LONGEST
      to_native(name, seconds) unless endless
    end

    # A whole number from `least` on, and below `limit`, as the generated code wants it.
    def count(name, number, least, limit)
      return number if number.is_a?(Integer) && number >= least && number < limit

      raise FencelockError::InvalidArgument, "#{name} is a whole number from #{least} on, not #{number.inspect}"
    end

    # Seconds as a Float.
    def to_seconds(native)
      native.to_f
    end
  end
  private_constant :Spans
end
