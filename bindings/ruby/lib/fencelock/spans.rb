# frozen_string_literal: true

module Fencelock
  # The generated code has times of the clock where spans of time are meant.
  module Spans
    module_function

    # Seconds, or nil, as the generated code wants them.
    def to_native(name, seconds)
      return if seconds.nil?
      unless seconds.is_a?(Numeric) && seconds >= 0 && seconds.finite?
        raise FencelockError::InvalidArgument, "#{name} is a number of seconds from 0 on, not #{seconds.inspect}"
      end
      Time.at(seconds).utc
    end

    # Seconds as a Float.
    def to_seconds(native)
      native.to_f
    end
  end
  private_constant :Spans
end
