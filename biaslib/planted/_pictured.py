PICTURED_ROLES=("nurse","judge","pilot","farmer","chef","student","singer","artist","teacher","laborer","programmer","analyst","mechanic","scientist","astronaut","firefighter","sheriff","detective","guard","builder","magician","juggler")
from biaslib import stimuli
e=stimuli.entities()
PICTURED_OBJECTS=tuple(e.entity)
def object_pairs():
    w=e[e.stereotype=="women"].entity.tolist(); m=e[e.stereotype=="men"].entity.tolist()
    return {**dict(zip(w,m)),**dict(zip(m,w))}
