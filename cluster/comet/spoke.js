// SPDX-License-Identifier: Apache-2.0
// Connects a page to a gateway of spoke: spoke(function (event, data, id) { ... }, query).
// on(name) subscribes to events of that name, close() ends the connection. The browser reconnects
// with its last id.
function spoke(take, query) {
  var source = new EventSource('/spoke/events' + (query ? '?' + query : ''));
  function pass(event) {
    take(event.type, event.data, event.lastEventId);
  }
  source.onmessage = pass;
  ['hello', 'lost', 'reconnect'].forEach(function (name) {
    source.addEventListener(name, pass);
  });
  source.addEventListener('closed', function (event) {
    source.close();
    pass(event);
  });
  return {
    on: function (name) {
      source.addEventListener(name, pass);
    },
    close: function () {
      source.close();
    },
  };
}
