// Package web serves HTTP to clients that hold connections, read slowly or send too many requests. It does not know the content.
//
//	Limits          the limits of a server: connections in total and of one caller, and deadlines
//	RequestLimiter  a limit of the requests that are served at the same time
//	Feed, Feeds     the latest value of a series, which is updated once for all readers
//	EventStream     server-sent events to one client
//	Throttle        a limit of log lines that clients can cause at will: the first line, then one per minute with a count
//	Refusal         a refused request: its status and its text
//
// The invariants:
//
//   - A slow reader does not delay other readers. It misses intermediate values, and a stream that its client does not read is ended.
//   - A slow sender holds no slot, because the body is read before the request gets a slot. A slow reader of an answer uses memory, up to a
//     limit, and above the limit it keeps its slot.
//   - Everything that a client can cause without a token is limited: connections, requests, streams and log lines.
//
// The failures:
//
//   - If all slots or connections are taken, the request is refused at once, and the client may repeat it.
//   - If a client disappears without closing its connection, the connection ends at its deadline.
//   - If the server ends, feeds and streams end.
package web
