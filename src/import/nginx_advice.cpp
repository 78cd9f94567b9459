#include "import/nginx_advice.h"

#include <array>
#include <utility>

namespace clockwise::importer {
namespace {

using Row = std::pair<std::string_view, std::string_view>;

// Names in full, or their beginning where the row ends in `_`. The first that fits.
constexpr std::array kAdvice{
    Row{"worker_connections",
        "is not needed: the limit follows from the descriptor limit of the "
        "process, or from limits.max_connections of a listener"},
    Row{"worker_rlimit_nofile", "is set from outside: LimitNOFILE of the service, or ulimit -n"},
    Row{"use", "is not needed: there is one event loop, on epoll"},
    Row{"multi_accept", "is not needed"},
    Row{"accept_mutex", "is not needed: each worker has a socket of its own"},
    Row{"user", "is set from outside: User of the service"},
    Row{"pid", "is not needed: the process stays in the foreground"},
    Row{"daemon", "is not needed: the process stays in the foreground"},
    Row{"error_log", "goes to stderr here: let the service keep it, level by --log-level"},
    Row{"access_log", "is one setting for all listeners here: access_log: {file, format, sample}"},
    Row{"log_format", "is json or combined here: access_log.format"},
    Row{"zone", "is not needed: all workers share one list of servers"},
    Row{"keepalive",
        "is connections.max_idle here, counted for each server and worker: choose it "
        "anew"},
    Row{"keepalive_requests", "has no equal: connections are used without a count"},
    Row{"keepalive_time", "has no equal: connections are used without an age"},
    Row{"resolver", "is the system's resolver here; names are resolved at start and reload"},
    Row{"resolver_timeout", "is the system's resolver here"},
    Row{"queue", "has no equal: a request that finds no server is answered at once"},
    Row{"sticky", "would overrule the ring; drop it, a key is sticky already"},
    Row{"proxy_next_upstream",
        "is retry here: connect failures and resets go on to the next owner"},
    Row{"proxy_next_upstream_tries", "is retry.attempts here, the first try not counted"},
    Row{"proxy_next_upstream_timeout", "has no equal: retry.attempts is the bound"},
    Row{"proxy_send_timeout", "has no equal of its own: timeouts.response bounds a stalled server"},
    Row{"proxy_set_header",
        "is not carried over: Host goes on as received, and X-Forwarded-For, "
        "-Proto and -Host are added; a server that wants others must be told"},
    Row{"proxy_http_version", "is not needed: servers are asked with HTTP/1.1 and keep-alive"},
    Row{"proxy_buffering", "is not needed: bodies are streamed with bounded buffers"},
    Row{"proxy_cache", "is a cache of nginx: keep nginx as a server behind this proxy for it"},
    Row{"proxy_cache_", "belongs to the cache of nginx"},
    Row{"proxy_redirect", "is not carried over: Location and Refresh pass unchanged"},
    Row{"proxy_ssl_", "is not carried over: servers are asked without TLS"},
    Row{"proxy_", "is not carried over"},
    Row{"memcached_next_upstream", "is not carried over: fallback names a pool to ask on a miss"},
    Row{"memcached_gzip_flag", "is not carried over: memcached.gzip_flag is up to 4294967295 here"},
    Row{"memcached_", "is not carried over"},
    Row{"fastcgi_", "is not carried over: FastCGI is not spoken"},
    Row{"uwsgi_", "is not carried over: uwsgi is not spoken"},
    Row{"scgi_", "is not carried over: SCGI is not spoken"},
    Row{"grpc_", "is not carried over: gRPC needs HTTP/2, which is not spoken"},
    Row{"ssl_", "is not carried over: listeners are plain, keep a TLS terminator in front"},
    Row{"http2", "is not carried over: clients are answered with HTTP/1.1"},
    Row{"gzip", "is not carried over: compress on the servers"},
    Row{"gzip_", "is not carried over: compress on the servers"},
    Row{"large_client_header_buffers", "is limits.header_size here, 32k for a whole head"},
    Row{"client_header_buffer_size", "is limits.header_size here, 32k for a whole head"},
    Row{"server_name", "is not looked at: every host of this listener goes to its pool"},
    Row{"set_real_ip_from", "is forwarded.trust of a listener here"},
    Row{"real_ip_header", "is forwarded.by of a listener here"},
    Row{"types", "is not needed for HTTP servers: Content-Type passes as they sent it"},
    Row{"default_type", "is not needed for HTTP servers: Content-Type passes as they sent it"},
    Row{"sendfile", "is not needed"},
    Row{"tcp_nopush", "is not needed"},
    Row{"tcp_nodelay", "is not needed: always on"},
    Row{"stream", "is not carried over: only requests of HTTP are placed by a key"},
    Row{"mail", "is not carried over"},
    Row{"if", "is not carried over: what stands in it counts as if it were always true"},
    Row{"map", "is not carried over: a key can only use what the request itself has"},
    Row{"geo", "is not carried over: a key can only use what the request itself has"},
    Row{"split_clients", "is not carried over: a key can only use what the request itself has"},
    Row{"set", "is not carried over: a variable that no key uses"},
    Row{"root", "is not carried over: files are not served, keep nginx for them"},
    Row{"alias", "is not carried over: files are not served, keep nginx for them"},
    Row{"index", "is not carried over: files are not served, keep nginx for them"},
    Row{"try_files", "is not carried over: files are not served, keep nginx for them"},
    Row{"rewrite", "is not carried over: targets pass unchanged"},
    Row{"return", "is not carried over: every request goes to a server"},
    Row{"error_page",
        "is not carried over: answers pass as the servers sent them; of memcached servers a "
        "fallback "
        "answers what they do not have"},
    Row{"limit_", "is not carried over: limits per client stay with a proxy in front"},
    Row{"auth_", "is not carried over: keep it in front or on the servers"},
    Row{"allow", "is not carried over: keep it in a firewall or in front"},
    Row{"deny", "is not carried over: keep it in a firewall or in front"},
    Row{"add_header", "is not carried over: let the servers send it"},
    Row{"expires", "is not carried over: let the servers send it"},
    Row{"load_module", "is not carried over"},
};

}  // namespace

std::string_view nginx_advice(std::string_view directive) noexcept {
  for (const auto& [name, advice] : kAdvice)
    if (name == directive || (name.ends_with('_') && directive.starts_with(name))) return advice;
  return "is not carried over: there is nothing like it here";
}

}  // namespace clockwise::importer
