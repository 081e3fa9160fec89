# frozen_string_literal: true

module Fencelock
  # A read-write lock: any number of readers hold it together, or one writer alone; from Client#rw_lock. One
  # object serves any number of threads.
  #
  # Readers and writers wait in one queue, first come, first served, so a stream of readers never keeps a writer
  # out. The owner is as with Lock: who writes may write and read within, and who reads may read again. Who reads
  # and asks to write would wait for itself, and hears a WouldDeadlockError at once.
  class RwLock
    # The side that reads: a Lock whose holders are in together. Each has a token above that of every earlier
    # writer and below that of every later one.
    attr_reader :reader
    # The side that writes: the Lock that Client#lock gives for this name.
    attr_reader :writer

    # @private
    def initialize(client, name, owner, options)
      @reader = Lock.new(client, name, owner, options) { |given| client.rw_lock(name, given).reader }
      @writer = Lock.new(client, name, owner, options)
    end

    # The lock's name.
    def name = writer.name

    # Acquires to read, calls the block with the hold, and releases; as Lock#synchronize otherwise.
    def with_read_lock(timeout: nil, &block) = reader.synchronize(timeout: timeout, &block)

    # Acquires to write, calls the block with the hold, and releases; as Lock#synchronize otherwise. Raises
    # WouldDeadlockError when the owner reads.
    def with_write_lock(timeout: nil, &block) = writer.synchronize(timeout: timeout, &block)

    def inspect = "#<#{self.class} #{name}>"
  end
end
