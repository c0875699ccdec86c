"""Chromium with no way out of this machine, and a bare page that stands for a notebook."""

from __future__ import annotations

from contextlib import contextmanager

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    # No renderer for the address bar's popup beside each page: in a page without a window it is only work.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,OmniboxPopup",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
AT_HOME = ("http://127.0.0.1", "ws://127.0.0.1", "blob:", "data:", "about:", "file:")
# `host` has what a front end gives a widget's module; what the view sends is kept in `sent`.
HOST = """
window.mount = async (source, style, state, views) => {
  const {default: widget} = await import(URL.createObjectURL(new Blob([source], {type: 'text/javascript'})));
  const listeners = {}, sent = [];
  const fire = (name, ...values) => [...(listeners[name] || [])].forEach(listener => listener(...values));
  const model = {
    get: name => state[name],
    set: (name, value) => { state[name] = value; fire('change:' + name); },
    send: message => sent.push(message),
    on: (name, listener) => (listeners[name] ||= []).push(listener),
    off: (name, listener) => { listeners[name] = listeners[name].filter(other => other !== listener); },
  };
  document.head.append(Object.assign(document.createElement('style'), {textContent: style}));
  const ends = [];
  for (let number = 0; number < views; number++) {
    const el = document.body.appendChild(document.createElement('div'));
    ends.push(await widget.render({model, el}));
  }
  sent.splice(0, sent.length, ...sent.filter(message => message.do === 'query')); // each has asked for the whole state
  window.host = {model, sent, listeners, ends, fire};
}; 0"""


@contextmanager
def opened(executable, **context):
    """Yield a browser context and the list of requests that would have left this machine."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable, headless=True, args=FLAGS)
        outside = []
        browser_context = browser.new_context(**context)
        browser_context.on(
            "request", lambda request: None if request.url.startswith(AT_HOME) else outside.append(request.url)
        )
        browser_context.on(
            "page",
            lambda page: page.on(
                "websocket", lambda ws: None if ws.url.startswith(AT_HOME) else outside.append(ws.url)
            ),
        )
        yield browser_context, outside
        browser_context.close()
        browser.close()
