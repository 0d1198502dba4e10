// The form of the Write tab as a request for ink, and a request as what stands in the form.
import { choose } from "./chosen.js";
import { parts } from "./elements.js";
import { chooseHand, chosenHand, listHands } from "./hands.js";
import { offers } from "./models.js";

const at = parts("write");
const FIELDS = {
  text: at.text,
  bias: at.bias,
  seed: at.seed,
  line_height: at.size,
  stroke_width: at.nib,
  thinning: at.thinning,
  color: at.color,
};

/** The seed that is asked for, if one is. */
export const wantedSeed = () => (at.seed.value === "" ? undefined : at.seed.valueAsNumber);

/** What the form asks for, but for the seed. */
export const asked = () => ({
  model: at.model.value,
  text: at.text.value,
  bias: at.bias.valueAsNumber,
  style: chosenHand(),
  line_height: at.size.valueAsNumber,
  stroke_width: at.nib.valueAsNumber,
  thinning: at.thinning.valueAsNumber,
  color: at.color.value,
});

/** Fill in the fields that a request has; settled when its hand can be chosen, of whatever model. */
export async function fill(request) {
  const other = request.model !== at.model.value && offers(at.model, request.model);
  if (other) {
    at.model.value = request.model;
    choose(at.model.id, request.model);
  }
  const hands = other && listHands(request.model);
  for (const [name, field] of Object.entries(FIELDS)) {
    if (name in request) field.value = request[name];
    // All of them: what stands there may be nothing for another model.
    for (const event of ["input", "change"]) field.dispatchEvent(new Event(event, { bubbles: true }));
  }
  chooseHand(request.style);
  await hands;
}
