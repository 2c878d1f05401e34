package message

import "slices"

// approvalResponse decodes an approver's answers. An ambiguous answer approves nothing.
func (x *decoding) approvalResponse() {
	var w wireApproval
	if faults := x.bind(&w); x.refuse(faults) {
		return
	}
	switch w.Remember {
	case "", "once", "conversation", "command", "prefix", "rule":
	default:
		x.errorf(InvalidArguments, "remember must be once, conversation, command, prefix or rule")
		return
	}
	if (w.Remember == "rule") != (w.Pattern != "") {
		x.errorf(InvalidArguments, "remember: rule needs a pattern of commands, and nothing else takes one")
		return
	}
	response := &ApprovalResponse{RequestID: w.RequestID, Remember: w.Remember, Pattern: w.Pattern, Beforehand: w.Beforehand}
	switch {
	case len(w.Approvals) > 0 && w.beside() != "":
		x.errorf(InvalidArguments, "%s", w.beside())
		return
	case len(w.Approvals) > 0:
		response.Answers = x.answers(w.Approvals)
	case w.Approve != nil && w.ApprovalRequestID != "":
		widen, text := w.Widen.widening(*w.Approve)
		if text != "" {
			x.errorf(InvalidArguments, "%s", text)
			return
		}
		response.Answers = []ApprovalAnswer{{ApprovalID: w.ApprovalRequestID, Approve: *w.Approve, Reason: w.Reason, Widen: widen, Arguments: w.Arguments}}
	default:
		x.errorf(InvalidArguments, "the response decides nothing; send approvals with tool_call_id and approve")
	}
	if len(response.Answers) > 0 {
		x.emit(response)
	}
}

func (w *wireApproval) beside() string {
	switch {
	case w.Widen != nil:
		return "widen is beside approvals; put it into the item of its call"
	case w.Arguments != nil:
		return "arguments are beside approvals; put them into the item of their call"
	case w.Approve != nil && !*w.Approve:
		return "approve: false is beside approvals; put it into the item of its call"
	}
	return ""
}

// answers returns the valid items. A faulty item, which may have meant no, also drops the other answers to its call.
func (x *decoding) answers(items []wireAnswer) []ApprovalAnswer {
	var answers []ApprovalAnswer
	unclear := false
	for i, item := range items {
		text := item.problem(items[:i])
		switch {
		case x.refuse(item.faults):
		case text != "":
			x.errorf(InvalidArguments, "%s", text)
		default:
			widen, _ := item.Widen.widening(*item.Approve)
			answers = append(answers, ApprovalAnswer{CallID: item.CallID, Approve: *item.Approve, Reason: item.Reason, Widen: widen, Arguments: item.Arguments})
			continue
		}
		x.errs[len(x.errs)-1].CallID = item.CallID
		answers = slices.DeleteFunc(answers, func(a ApprovalAnswer) bool { return a.CallID == item.CallID })
		unclear = unclear || checkID(item.CallID, "tool_call_id", item.faults) != nil
	}
	if unclear && len(answers) > 0 {
		x.errorf(InvalidArguments, "an item of approvals does not name its call clearly, so no item counts")
		return nil
	}
	return answers
}

func (a *wireAnswer) problem(earlier []wireAnswer) string {
	switch {
	case a.Type == "tool":
		return "an approval may not bring a result: toold runs the call itself; send type approval with approve"
	case a.Type != "" && a.Type != "approval":
		return "an item of approvals must have the type approval"
	case a.CallID == "":
		return "an item of approvals names no tool_call_id"
	case a.Approve == nil:
		return "an item of approvals has no approve; send true or false"
	}
	if slices.ContainsFunc(earlier, func(e wireAnswer) bool { return e.CallID == a.CallID }) {
		return "the response decides this call twice; decide it once"
	}
	_, text := a.Widen.widening(*a.Approve)
	return text
}
