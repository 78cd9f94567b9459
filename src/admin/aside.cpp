#include "admin/aside.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace clockwise::admin {

Aside::~Aside() {
  thread_.stop();
  thread_.join();
}

bool Aside::take(std::function<void()> work) {
  if (pieces_.fetch_add(1) >= kMost) {
    --pieces_;
    return false;
  }
  boost::asio::post(thread_, [this, work = std::move(work)] {
    work();
    --pieces_;
  });
  return true;
}

}  // namespace clockwise::admin
