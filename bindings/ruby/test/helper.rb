# frozen_string_literal: true

require "fencelock"
require "minitest/autorun"
require "securerandom"
require "socket"
require "tmpdir"

Thread.report_on_exception = false

# A real server as a process on a free port, ended with the tests.
class RedisServer
  attr_reader :url

  def self.shared = @shared ||= new.tap { |server| Minitest.after_run { server.close } }

  def initialize
    @folder = Dir.mktmpdir("fl-redis")
    5.times do
      @port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
      @url = "redis://127.0.0.1:#{@port}"
      start
      # Another program may have taken the port meanwhile.
      Helper.eventually("redis-server answers") { answers? || !alive? }
      return if alive?
    end
    raise File.read(File.join(@folder, "log"))
  end

  def close
    return unless alive?

    Process.kill(:KILL, @process)
    Process.wait(@process)
    @process = nil
  end

  private

  def start
    log = File.join(@folder, "log")
    @process = spawn(ENV.fetch("REDIS_SERVER", "redis-server"), "--port", @port.to_s, "--bind", "127.0.0.1",
                     "--save", "", "--appendonly", "no", "--dir", @folder, %i[out err] => log)
  end

  def alive? = @process && Process.waitpid(@process, Process::WNOHANG).nil?

  def answers?
    TCPSocket.open("127.0.0.1", @port) do |socket|
      socket.write("PING\r\n")
      socket.gets == "+PONG\r\n"
    end
  rescue SystemCallError
    false
  end
end

module Helper
  BOUND = 30

  # What the tests run on: `memory` and `sqlite`, `redis` with a server of our own, or any URL.
  STORES = ENV.fetch("FENCELOCK_STORES", "memory,sqlite,redis").split(",").map(&:strip)

  module_function

  def url_of(store)
    case store
    when "memory" then "memory:#{SecureRandom.uuid}"
    when "sqlite" then "sqlite:#{File.join(Dir.mktmpdir('fl-sqlite'), 'locks.db')}"
    when "redis" then RedisServer.shared.url
    else store
    end
  end

  def fresh = "ruby/#{SecureRandom.uuid}"

  # Waits for a condition.
  def eventually(what)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + BOUND
    until yield
      raise "in #{BOUND} s this did not come true: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

      sleep 0.001
    end
  end

  # How many acquires wait in a client.
  def waiting(client) = client.metrics[/^fencelock_waiting (\S+)/, 1].to_i

  def eventually_waiting(client, count) = eventually("#{count} waiters") { waiting(client) == count }

  # Nobody holds the lock and nobody waits for it, by the store's word.
  def eventually_empty(client, name)
    eventually("nothing is left of #{name}") do
      info = client.inspect_lock(name)
      info.nil? || (info.holds.empty? && info.waiters.empty?)
    end
  end
end

# A class of tests for each store: `on_each_store("Locks") { def test_… }`.
def on_each_store(name, &tests)
  Helper::STORES.each do |store|
    label = "#{name} on #{store[/\A\w+/]}"
    tested = Class.new(Minitest::Test) do
      include Helper
      define_singleton_method(:name) { label }
      define_singleton_method(:to_s) { label }
      define_method(:setup) do
        @url = url_of(store)
        @client = Fencelock.connect(@url)
        @lock = @client.lock(fresh)
      end
      define_method(:teardown) { @client.close }
      class_eval(&tests)
    end
    Object.const_set("#{name}On#{store[/\A\w+/].capitalize}Test", tested)
  end
end
