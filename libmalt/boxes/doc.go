// Package boxes is how objects travel, if no engine carries them: through one box per rank,
// which the receivers read, and perhaps by a route past the boxes.
//
// Boxes is the body of an object. A scatter has the codec write a message into the box; a
// gather takes from the boxes of the senders what the rule says. A rule decides about both,
// and what the boxes keep: the newest update, a queue, or the update of each clock. A sync
// is a scatter and a gather, or goes by the route, which may fall back on the boxes.
//
// A Channel is the boxes of one mode: graph and rule. To configure an object is to make a
// new channel.
package boxes
