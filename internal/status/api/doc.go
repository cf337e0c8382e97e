// Package api is the JSON API. Programs use it to read a node's state and to give orders.
//
//	endpoint  one route: its path, parameters, types of body and reply, required right, and function
//	askFunc   a function that answers one request with a value of the endpoint's type
//	signed    a body that names the author of an order
//	apiError  the answer to a request that failed: a text with a remedy, and a code for programs
//	stream    the Snapshot after each change, as server-sent events
//
// The routes and the OpenAPI description are generated from the same table, so they cannot differ.
//
// The invariants:
//
//   - An order needs the token or the admin socket. A question that returns records or output needs one of them as well; all other
//     questions are public.
//   - Bodies are checked strictly. An unknown field or a value without effect is an error.
//   - A caller without the right gets the public part of a state. Package state shortens the errors in that part.
//   - Requests over the admin socket have their own slots, so that the network cannot block an operator on the host.
//
// The failures:
//
//   - If the state is not known yet, the answer is 503 with the configured state. An old state is sent together with its age.
//   - If all slots are taken, the answer is 503 at once, and the caller may ask again.
//   - If an order was carried out only in part, the error contains the outcome of that part.
//   - If an endpoint panics, the answer is 503, the log contains the stack, and the daemon continues.
package api
