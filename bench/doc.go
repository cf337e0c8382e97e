// Command bench measures what baton promises about speed, latency and memory, against
// real servers that it starts itself, and fails when a promise is missed.
//
// Speed is a ratio within one run: machines differ, and the same machine differs
// from hour to hour by a third. Three kinds of programs move the same rows into
// the same table, taking turns:
//
//   - baton: the pipeline, source and sink that the daemon puts together, default page
//     sizes, with ledger and fence; one lane and two, with rows in the order of the
//     table's key where baton can sort them, and in none where it cannot;
//   - direct: rows that lie in memory already, written by the fastest ways known,
//     without Redis, ledger or fence. That is the wall;
//   - naive: the first solution of most programmers: one row at a time.
//
// Every program runs in a process of its own, so that its CPU time and memory are its own too. Before each the table is filled again and
// vacuumed; after each its content is checked: a fast program that writes nothing must not count.
//
// Latency, at a trickle of changes, and memory, with a large backlog, are those of a
// real `baton run` process.
package main
