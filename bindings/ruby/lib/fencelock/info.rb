# frozen_string_literal: true

module Fencelock
  # What is generated as a number.
  module Names
    LOSSES = LossReason.constants.to_h { |name| [LossReason.const_get(name), name.downcase] }.freeze
    MODES = HoldMode.constants.to_h { |name| [HoldMode.const_get(name), name.downcase] }.freeze
    ABANDONED = { Abandoned::YES => true, Abandoned::NO => false, Abandoned::UNKNOWN => nil }.freeze
  end
  private_constant :Names

  # Spans are seconds; whether the last holder was lost is true, false, or nil when nobody knows; a mode is
  # :exclusive, :shared or :permits.
  LockInfo.prepend(Module.new do
    def abandoned = Names::ABANDONED.fetch(super)
  end)
  HoldInfo.prepend(Module.new do
    def expires_in = Spans.to_seconds(super)
    def lease = Spans.to_seconds(super)
    def mode = Names::MODES.fetch(super)
  end)
  WaiterInfo.prepend(Module.new do
    def heard_ago = Spans.to_seconds(super)
    def mode = Names::MODES.fetch(super)
  end)
end
