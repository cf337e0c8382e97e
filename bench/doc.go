// Command bench measures what baton promises about speed and memory, against
// real servers that it starts itself, and fails when a promise is missed.
//
// Speed is a ratio within one run: machines differ, and the same machine differs
// from hour to hour by a third. Three kinds of programs move the same rows into
// the same table, taking turns:
//
//   - baton: the pipeline, source and sink that the daemon puts together, one
//     lane, default page sizes, with ledger and fence;
//   - direct: rows that lie in memory already, written by the fastest ways known,
//     without Redis, ledger or fence. That is the wall;
//   - naive: what one writes first: SCAN and HGETALL, one upsert at a time.
//
// Every program runs in a process of its own, so that its CPU time and memory are
// its own too. Before each the table is filled anew and vacuumed;
// after each its content is checked: a fast program that writes nothing is none.
//
// Memory is that of a real `baton run` process with a large backlog.
package main
