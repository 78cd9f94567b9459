// The exchange while the rest of a big plain body moves from socket to socket.
#include "proxy/exchange.h"
#include "proxy/session.h"

namespace clockwise::proxy {

// Begins to splice when that is possible and worth it; false: relay through the buffer.
bool Exchange::try_splice(BodyReader& body, io::Stream& from, io::Stream& to, bool towards_client) {
  const BodyWriter& writer = towards_client ? response_writer_ : request_writer_;
  if (body.spliceable() < Splice::kWorthIt || writer.kind() == http::BodyKind::chunked)
    return false;
  if (splice_ || from.reading() || !from.in().empty()) return false;
  if (from.splice_handle() < 0 || to.splice_handle() < 0) return false;
  const std::uint64_t limit = session_->listener().config().limits.body_size;
  if (!towards_client && limit != 0 && body.kind() != http::BodyKind::length) return false;
  const auto pipe = context_.loop.pipes.take();
  if (!pipe) return false;
  from.release_empty_block();
  from.read_beside();
  splice_ = std::make_unique<Splice>(context_.loop.pipes, *pipe, from, to, body.spliceable(),
                                     towards_client);
  run_splice();
  return true;
}

void Exchange::run_splice() {
  Splice& splice = *splice_;
  const bool towards_client = splice.towards_client();
  const Splice::State state = splice.run();
  const std::uint64_t received = splice.take_received();
  const std::uint64_t sent = splice.take_sent();
  metrics::ListenerCells& client_cells = session_->listener().cells();
  metrics::BackendCells& server_cells = target_->cells();
  if (towards_client) {
    server_cells.received_bytes.add(received);
    client_cells.sent_bytes.add(sent);
    sent_to_client_ += sent;
    response_body_.spliced(received);
  } else {
    client_cells.received_bytes.add(received);
    server_cells.sent_bytes.add(sent);
    request_body_.spliced(received);
    if (received > 0) restart_total();
  }
  io::Stream& client = session_->client();
  io::Stream& server = server_->stream();
  switch (state) {
    case Splice::State::wait_source: {
      io::Stream& source = towards_client ? server : client;
      received > 0 ? source.readable_soon() : source.wait_readable();
      return towards_client ? answer_awaits(Side::server) : request_awaits(Side::client);
    }
    case Splice::State::wait_sink:
      (towards_client ? client : server).wait_writable();
      return towards_client ? answer_awaits(Side::client) : request_awaits(Side::server);
    case Splice::State::done:
      splice_.reset();
      return towards_client ? response_progress() : request_sent();
    case Splice::State::source_ended:
      splice_.reset();
      if (!towards_client) return request_body_bad("the request body ended before its time");
      if (!response_body_.end_of_stream())
        return cut_by_server(Failure::reset, "the server cut its answer");
      server_keep_alive_ = false;
      return response_progress();
    case Splice::State::source_failed:
      splice_.reset();
      return towards_client ? cut_by_server(Failure::reset, "the server cut its answer")
                            : client_left();
    case Splice::State::sink_failed:
      splice_.reset();
      if (towards_client) return client_left();
      return request_written(Outbox::Result::failed);
  }
}

}  // namespace clockwise::proxy
