// What conversations and servers do to messages before a template sees them. Inside chat templates; not for other rooms.
#ifndef MF_TEXT_CHAT_RULES_H
#define MF_TEXT_CHAT_RULES_H

#include "base/json.h"

// A copy of the messages: without members that are null, reasoning under the names reasoning_content and thinking where it is under
// reasoning or one of those (as transformers 5 does), and with `developer` the role developer made system (*changed then). NULL
// when memory is out.
mf_json *mf_chat_rules_apply(mf_arena *arena, const mf_json *messages, bool developer, bool *changed);

// Whether a system message is not the first one.
bool mf_chat_rules_late_system(const mf_json *messages);

// A copy in which the texts of late system messages stand behind the first one's, an empty line between; without a first one, they
// become it. NULL when memory is out or a content is no text.
mf_json *mf_chat_rules_merge(mf_arena *arena, const mf_json *messages);

#endif
