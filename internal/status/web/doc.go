// Package web serves HTTP to clients that hold connections, read slowly or flood. It does not know the content.
//
//	Limits       the bounds of a server: connections, of one caller too, and deadlines
//	Places       the requests that are served at the same time
//	Feed, Feeds  the latest value of a series, filled once for all of its readers
//	EventStream  server-sent events to one client
//	Throttle     log lines that clients can cause at will: the first one, then one a minute with a count
//	Refusal      a refused request: its status and its words
//
// The invariants:
//
//   - A slow reader delays no other one. It misses values in between, and a stream that it does not read is ended.
//   - A slow sender holds no slot: the body is read before. A slow reader of an answer holds memory, up to a bound, and then its slot.
//   - All that a client can cause without a token has a bound: connections, requests, streams, log lines.
//
// What fails, and what then:
//
//   - All slots or connections are taken: the request is refused at once, and may be repeated.
//   - A client vanishes without a word: its connection ends by the deadline.
//   - The server ends: feeds are over, and streams end.
package web
