package server

import "fmt"

// kept returns how many of all connections only tokens that decide may use, so that agents
// and observers cannot lock out those who watch over them.
func kept(all int) int { return min((all+15)/16, all-1) }

// share returns how many connections one token that does not decide may have, so that no
// client takes the places of all others.
func share(all int) int { return max((all-kept(all))*3/4, 1) }

// refusal returns why a token may not connect now, or "". Called with mu held.
func (s *Server) refusal(who Token) string {
	all, own, others := s.opt.Connections, 0, 0
	for ss := range s.sessions {
		if ss.who.Name == who.Name {
			own++
		}
		if !ss.who.decides() {
			others++
		}
	}
	switch {
	case s.closing:
		return "toold is stopping"
	case len(s.sessions) >= all:
		return fmt.Sprintf("%d clients are connected already (limits.connections); close one, or try again later", all)
	case who.decides():
		return ""
	case others >= all-kept(all):
		return fmt.Sprintf("%d agents and observers are connected already, and the rest of limits.connections is for approvers and admins; close one, or try again later", others)
	case own >= share(all):
		return fmt.Sprintf("the token %s has %d connections already, and more would keep other clients out (limits.connections); close one, or try again later", who.Name, own)
	}
	return ""
}
