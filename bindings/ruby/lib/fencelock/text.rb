# frozen_string_literal: true

module Fencelock
  # Strings on their way to the generated code.
  module Text
    module_function

    # As UTF-8, or nil: what cannot be that is refused, in this library's own words.
    def to_native(name, text)
      return if text.nil?
      raise TypeError, "#{name} is a String, not #{text.inspect}" unless text.respond_to?(:to_str)

      text = text.to_str.encode(Encoding::UTF_8)
      return text if text.valid_encoding?

      raise FencelockError::InvalidArgument, "#{name} is not valid UTF-8"
    rescue EncodingError
      raise FencelockError::InvalidArgument, "#{name} cannot be UTF-8: it is #{text.encoding}"
    end
  end
  private_constant :Text
end
